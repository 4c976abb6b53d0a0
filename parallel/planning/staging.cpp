#include "parallel/planning/staging.hpp"

#include "core/parameter_store.hpp"
#include "parallel/communicator/exchanges/parts.hpp"
#include "parallel/communicator/staging_memory.hpp"
#include "parallel/planning/strategy_record.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

namespace mylos::parallel {
namespace {

using Act = StrategyRecord::Act;

/// Calls under way and their copies on the host, as MpiCommunicator and PendingResults have them.
class ReplayedCalls {
 public:
  void begin(std::size_t call, std::initializer_list<std::size_t> copies) {
    for (const std::size_t bytes : copies) held_[call].push_back(memory_.take(bytes));
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
  StagingBlocks memory_;
  std::map<std::size_t, std::vector<std::size_t>> held_;  ///< sizes of the copies of each call
};

/// Begins a call. A group of one needs no copies. `rank` is among those that split a unit.
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
void load(ReplayedCalls& calls, const UnitExchanges& exchanges, const StagedRun& run, std::size_t rank) {
  if (exchanges.replicas == 1 || run.loaded_piece == 0) return;
  for (const ParameterTensor& tensor : exchanges.table.tensors()) {
    const std::size_t part = exchanges.slice_size(tensor.unit), begin = tensor.offset, end = begin + tensor.size;
    const std::size_t first = std::clamp(rank * part, begin, end), last = std::clamp((rank + 1) * part, begin, end);
    const std::size_t bytes = exchanges.has_master(tensor.unit) ? sizeof(float) : bytes_of(exchanges.precision);
    for (std::size_t at = first; at < last; at += run.loaded_piece) {
      calls.begin(0, {std::min(run.loaded_piece, last - at) * bytes});
      calls.wait(0);
    }
  }
}

/// Exchanges the losses of a step and the squares of its gradients, and its observations.
void exchange_results(StrategyRecord& record, const ParameterTable& table, std::size_t samples) {
  for (const CollectiveCall::Group group : {CollectiveCall::shard, CollectiveCall::replicate}) {
    record.exchange({.count = samples, .type = ElementType::float64, .group = group});
  }
  record.sum_squares();
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    if (table.state_size(unit) > 0) record.exchange({.count = table.state_size(unit) * samples});
  }
}

/// The beginning of a run: a few steps, and evaluations before some of them. Which blocks are free when a larger one is
/// needed depends on all that came before, so the sizes are those of a run with as many micro-batches.
void record_run(StrategyRecord& record, const UnitExchanges& exchanges, const StagedRun& run) {
  constexpr std::size_t steps = 6, between_evaluations = 3;  // later steps find all the blocks that they need
  constexpr std::size_t most = 8;  // more micro-batches do not change the figure, and take time
  for (std::size_t step = 0; step < steps; ++step) {
    for (int i = 0; run.evaluates && step % between_evaluations == 0 && i < 2; ++i) record.predict();
    record.step(std::min(exchanges.settings.micro_batches, most));
    exchange_results(record, exchanges.table, run.samples);
    record.update();
  }
}

/// Returns the most bytes of these ranks.
std::size_t most_bytes(const UnitExchanges& exchanges, const StagedRun& run, const std::set<std::size_t>& ranks) {
  StrategyRecord record(exchanges);
  record_run(record, exchanges, run);
  std::size_t most = 0;
  for (const std::size_t rank : ranks) {
    ReplayedCalls calls;
    load(calls, exchanges, run, rank);
    for (const Act& act : record.acts()) {
      if (act.kind == Act::Kind::begin) begin(calls, exchanges, act, rank);
      if (act.kind == Act::Kind::wait) calls.wait(act.number);
      if (act.kind == Act::Kind::drop) calls.drop(act.number);
    }
    most = std::max(most, calls.bytes());
  }
  return most;
}

/// Returns one rank of each class of ranks whose parts have the same sizes in every unit. Parts of a unit are full up
/// to the rank that holds its end, and empty after it.
std::set<std::size_t> ranks_that_differ(const UnitExchanges& exchanges, const StagedRun& run) {
  const bool loads = exchanges.replicas > 1 && run.loaded_piece > 0;  // pieces end differently on each rank
  std::set<std::size_t> ranks = {0};
  for (std::size_t rank = 1; loads && rank < exchanges.shards; ++rank) ranks.insert(rank);
  for (std::size_t unit = 0; unit < exchanges.table.units().size(); ++unit) {
    const std::size_t size = exchanges.table.units()[unit].size;
    if (size == 0) continue;
    const std::size_t full_parts = size / exchanges.slice_size(unit);
    for (const std::size_t rank : {full_parts, full_parts + 1}) {
      if (rank < exchanges.shards) ranks.insert(rank);
    }
  }
  return ranks;
}

/// Elements of units with their rests.
struct Capacities {
  std::size_t sum = 0, largest = 0;
};

/// Counts the units for which `counts` returns true.
template <class Counts>
Capacities capacities(const UnitExchanges& exchanges, const Counts& counts) {
  Capacities found;
  for (std::size_t unit = 0; unit < exchanges.table.network_units(); ++unit) {
    std::size_t capacity = 0;
    for (const std::size_t part : exchanges.table.parts(unit)) {
      if (counts(part)) capacity += exchanges.slice_size(part) * exchanges.shards;
    }
    found = {found.sum + capacity, std::max(found.largest, capacity)};
  }
  return found;
}

}  // namespace

std::size_t staging_bytes(const UnitExchanges& exchanges, const StagedRun& run) {
  return most_bytes(exchanges, run, ranks_that_differ(exchanges, run));
}

std::size_t staging_bytes_of_rank(const UnitExchanges& exchanges, const StagedRun& run, std::size_t rank) {
  return most_bytes(exchanges, run, {rank});
}

StrategyMemory strategy_memory(const UnitExchanges& exchanges) {
  const StrategySettings& settings = exchanges.settings;
  const auto has_master = [&](std::size_t unit) { return exchanges.has_master(unit); };
  const Capacities all = capacities(exchanges, [](std::size_t) { return true; });
  const Capacities trained =
      capacities(exchanges, [&](std::size_t unit) { return exchanges.table.units()[unit].trained; });
  const bool splits_values = shards_values(settings.kind), splits_gradients = shards_gradients(settings.kind);
  StrategyMemory memory{.slices = trained.sum / exchanges.shards};
  const std::size_t held = splits_values ? exchanges.value_places() * all.largest : all.sum;
  memory.values = held * bytes_of(exchanges.precision);
  const bool has_master_weights = splits_values || exchanges.precision != Precision::float32;
  const std::size_t with_master = capacities(exchanges, has_master).sum;
  if (has_master_weights) memory.values += with_master / exchanges.shards * sizeof(float);
  if (splits_values) memory.values += (all.sum - with_master) / exchanges.shards * bytes_of(exchanges.precision);
  const std::size_t levels = settings.tree_sums ? TreeSum::levels(settings.micro_batches) : 0;
  const std::size_t summed = (splits_gradients ? memory.slices : trained.sum) * (1 + levels);
  const std::size_t in_places = exchanges.gradient_places() * trained.largest;
  memory.gradients = (summed + (splits_gradients ? in_places : 0) + unread_gradients(exchanges.table)) * sizeof(float);
  if (settings.bfloat16_gradients) memory.exchange = in_places * sizeof(bfloat16);
  return memory;
}

}  // namespace mylos::parallel
