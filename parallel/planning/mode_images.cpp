#include "parallel/planning/mode_images.hpp"

#include "parallel/communicator/image_memory.hpp"
#include "parallel/communicator/parts.hpp"
#include "parallel/planning/strategy_record.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

namespace mylos::parallel {
namespace {

using Act = StrategyRecord::Act;

/// Calls under way and their images, as MpiCommunicator and PendingResults have them.
class ReplayedCalls {
 public:
  void begin(std::size_t call, std::initializer_list<std::size_t> images) {
    for (const std::size_t bytes : images) held_[call].push_back(memory_.take(bytes));
  }
  /// Brings back the results of this call and of all earlier ones.
  void wait(std::size_t call) {
    while (!held_.empty() && held_.begin()->first <= call) drop(held_.begin()->first);
  }
  /// Ends a call without its result.
  void drop(std::size_t call) {
    const auto found = held_.find(call);
    if (found == held_.end()) return;
    for (const std::size_t size : found->second) memory_.give_back(size);
    held_.erase(found);
  }
  std::size_t bytes() const { return memory_.size(); }

 private:
  ImageBlocks memory_;
  std::map<std::size_t, std::vector<std::size_t>> held_;  ///< sizes of the images of each call
};

UnitExchanges exchanges_of(const ImageSettings& settings, const ParameterTable& table) {
  return {settings.mode, settings.shards, settings.replicas, settings.precision, table};
}

/// Begins a call. There are no images in a group of one. `rank` is among those that split a unit.
void begin(ReplayedCalls& calls, const UnitExchanges& exchanges, const Act& act, std::size_t rank) {
  const CollectiveCall& call = act.call;
  if (exchanges.ranks_of(call.group) == 1) return;
  const std::size_t all = call.count * bytes_of(call.type);
  const std::size_t part = Parts{call.count, call.part}.piece(rank, 0, call.part).size;  // without padding
  if (call.kind == CollectiveCall::Kind::all_reduce) return calls.begin(act.number, {all});
  if (call.kind == CollectiveCall::Kind::all_gather) return calls.begin(act.number, {part * bytes_of(call.type), all});
  calls.begin(act.number, {all, part * bytes_of(call.sum_type)});
}

/// Passes tensors on to the ranks that hold the same slices.
void load(ReplayedCalls& calls, const ImageSettings& settings, const UnitExchanges& exchanges, std::size_t rank) {
  if (settings.replicas == 1 || settings.loaded_piece == 0) return;
  for (const ParameterTensor& tensor : exchanges.table.tensors()) {
    const std::size_t part = exchanges.slice_size(tensor.unit), begin = tensor.offset, end = begin + tensor.size;
    const std::size_t first = std::clamp(rank * part, begin, end), last = std::clamp((rank + 1) * part, begin, end);
    for (std::size_t at = first; at < last; at += settings.loaded_piece) {
      calls.begin(0, {std::min(settings.loaded_piece, last - at) * sizeof(float)});
      calls.wait(0);
    }
  }
}

/// Exchanges the losses of a step and the squares of its gradients, and its observations.
void exchange_results(StrategyRecord& record, const ImageSettings& settings, const ParameterTable& table) {
  for (const CollectiveCall::Group group : {CollectiveCall::shard, CollectiveCall::replicate}) {
    record.exchange({.count = settings.samples, .type = ElementType::float64, .group = group});
  }
  record.sum_squares();
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    if (table.state_size(unit) > 0) record.exchange({.count = table.state_size(unit) * settings.samples});
  }
}

/// The beginning of a run: a few steps, and evaluations before some of them. Which blocks are free when a larger one is
/// needed depends on all that came before, so the sizes are those of a run with as many micro-batches.
void record_run(StrategyRecord& record, const ImageSettings& settings, const ParameterTable& table) {
  constexpr std::size_t steps = 6, between_evaluations = 3;  // later steps find all the blocks that they need
  constexpr std::size_t most = 8;  // more micro-batches do not change the figure, and take time
  for (std::size_t step = 0; step < steps; ++step) {
    for (int i = 0; settings.evaluates && step % between_evaluations == 0 && i < 2; ++i) record.predict();
    record.step(std::min(settings.mode.micro_batches, most));
    exchange_results(record, settings, table);
    record.update();
  }
}

std::size_t replay(const StrategyRecord& record, const ImageSettings& settings, const UnitExchanges& exchanges,
                   std::size_t rank) {
  ReplayedCalls calls;
  load(calls, settings, exchanges, rank);
  for (const Act& act : record.acts()) {
    if (act.kind == Act::Kind::begin) begin(calls, exchanges, act, rank);
    if (act.kind == Act::Kind::wait) calls.wait(act.number);
    if (act.kind == Act::Kind::drop) calls.drop(act.number);
  }
  return calls.bytes();
}

/// Returns one rank of each class of ranks whose parts have the same sizes in every unit. Parts of a unit are full up
/// to the rank that holds its end, and empty after it.
std::set<std::size_t> ranks_that_differ(const ImageSettings& settings, const ParameterTable& table) {
  const bool loads = settings.replicas > 1 && settings.loaded_piece > 0;  // pieces end differently on each rank
  std::set<std::size_t> ranks = {0};
  for (std::size_t rank = 1; loads && rank < settings.shards; ++rank) ranks.insert(rank);
  for (const ParameterUnit& unit : table.units()) {
    if (unit.size == 0) continue;
    const std::size_t full_parts = unit.size / shard_size(unit.size, settings.shards);
    for (const std::size_t rank : {full_parts, full_parts + 1}) {
      if (rank < settings.shards) ranks.insert(rank);
    }
  }
  return ranks;
}

/// Returns the most bytes of these ranks.
std::size_t most_bytes(const ImageSettings& settings, const ParameterTable& table, const std::set<std::size_t>& ranks) {
  const UnitExchanges exchanges = exchanges_of(settings, table);
  StrategyRecord record(exchanges);
  record_run(record, settings, table);
  std::size_t most = 0;
  for (const std::size_t rank : ranks) most = std::max(most, replay(record, settings, exchanges, rank));
  return most;
}

}  // namespace

std::size_t image_bytes_of_rank(const ImageSettings& settings, const ParameterTable& table, std::size_t rank) {
  return most_bytes(settings, table, {rank});
}

std::size_t image_bytes(const ImageSettings& settings, const ParameterTable& table) {
  return most_bytes(settings, table, ranks_that_differ(settings, table));
}

}  // namespace mylos::parallel
