#include "train/engine/models/initial_parameters.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/consistency.hpp"
#include "parallel/communicator/value_broadcast.hpp"
#include "train/engine/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>
#include <vector>

namespace mylos::train {
namespace {

/// Returns the sum of a hash of each element, so that the order and the pieces in which they are read do not matter.
std::uint64_t checksum_of(std::size_t tensor, std::size_t first, std::span<const float> values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t hash = (first + i) * 0x9E3779B97F4A7C15u ^ (tensor << 32 | std::bit_cast<std::uint32_t>(values[i]));
    hash *= 0xBF58476D1CE4E5B9u;
    sum += (hash ^ hash >> 29) * 0x94D049BB133111EBu;
  }
  return sum;
}

/// Elements of one tensor that every rank reads, to compare the files that ranks see.
constexpr std::size_t compared_elements = 256;

/// Returns the tensor that is compared: the first linear layer after the middle, which most tuning changes, as adapters
/// do. One is enough, and has ranks open one file more at most.
std::size_t compared_tensor(std::span<const ParameterTensor> tensors) {
  const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
  const auto linear = std::find_if(middle, tensors.end(), [](const ParameterTensor& each) { return each.is_linear; });
  return static_cast<std::size_t>((linear == tensors.end() ? middle : linear) - tensors.begin());
}

/// Returns the checksum of how adapters are applied, which their tensors do not say.
std::uint64_t checksum_of_rules(const ParameterTable& table) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < table.tensors().size(); ++i) {
    const std::optional<AdapterRule>& rule = table.tensor(i).adapter;
    if (rule) sum += checksum_of(i, 0, std::array{rule->scale, rule->dropout});
  }
  return sum;
}

/// Fills this rank's part of one tensor at a time. Ranks that own the same part take turns. The first rank fills the
/// state, which is small and the same on all ranks.
class TensorInitializer {
 public:
  TensorInitializer(ParameterStore& store, parallel::ShardingStrategy& strategy)
      : table_(store.table()),
        store_(store),
        strategy_(strategy),
        copies_(strategy.copies().size()),
        copy_(strategy.copies().rank()),
        fills_state_(strategy.world().rank() == 0) {
    if (strategy.world().size() > 1) compared_ = compared_tensor(table_.tensors());
  }

  /// Fills the parameter or state tensor called `name`. Errors: std::invalid_argument if there is none.
  void fill(const std::string& name, const ValueReader& read) {
    const auto states = table_.state_tensors();
    if (std::ranges::find(states, name, &ParameterTensor::name) != states.end()) return fill_state(name, read);
    const std::size_t tensor = table_.find(name);
    const TensorRange owned = strategy_.owned_range(tensor);
    if (tensor == compared_) {
      const std::size_t count = std::min(compared_elements, table_.tensor(tensor).size);
      filled_.compared_checksum = checksum_of(tensor, 0, read_piece(read, 0, count));
    }
    for_each_piece(owned.size(), [&](std::size_t first, std::size_t count) {
      const FilledPiece piece{tensor, owned.begin + first, count, filled_.pieces.size() % copies_};
      filled_.pieces.push_back(piece);
      if (piece.by != copy_) return;
      const std::span<const float> values = read_piece(read, piece.first, count);
      strategy_.write_tensor(tensor, piece.first, values);
      const bool is_adapted = table_.is_adapted() && !table_.tensor(tensor).group.trainable;
      if (is_adapted) filled_.adapted_checksum += checksum_of(tensor, piece.first, values);
    });
  }
  /// Returns the pieces filled by all ranks that own the same part.
  FilledParameters filled() && { return std::move(filled_); }

 private:
  void fill_state(const std::string& name, const ValueReader& read) {
    if (!fills_state_) return;
    const std::size_t tensor = table_.find_state(name);
    const auto state = store_.state(tensor);
    for_each_piece(state.size(), [&](std::size_t first, std::size_t count) {
      const std::span<const float> values = read_piece(read, first, count);
      const Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged> source(values.data(), values.size());
      Kokkos::deep_copy(slice(state, first, first + count), source);
    });
  }

  /// Returns values that are valid until the next call.
  std::span<const float> read_piece(const ValueReader& read, std::size_t first, std::size_t count) {
    piece_.resize(count);
    read(first, piece_);
    return piece_;
  }

  const ParameterTable& table_;
  ParameterStore& store_;
  parallel::ShardingStrategy& strategy_;
  std::size_t copies_, copy_;
  bool fills_state_;
  std::optional<std::size_t> compared_;  // the tensor that is compared, if there are several ranks
  FilledParameters filled_;
  std::vector<float> piece_;
};

/// Fills every tensor for which the task has no values.
void initialize_others(std::span<const ParameterTensor> tensors, const std::set<std::string>& given,
                       std::optional<std::uint64_t> seed, TensorInitializer& initializer) {
  for (const ParameterTensor& tensor : tensors) {
    if (given.contains(tensor.name)) continue;
    if (!seed) {
      fail(fmt::format("the model has no {}: it was not fine-tuned for this task; train it first", tensor.name));
    }
    initializer.fill(tensor.name,
                     [&](std::size_t first, std::span<float> values) { initialize(tensor, *seed, first, values); });
  }
}

}  // namespace

std::uint64_t adapted_checksum(const ParameterTable& table, const std::function<void(const TensorWriter&)>& read) {
  std::uint64_t sum = checksum_of_rules(table);
  std::vector<float> values;
  read(TensorWriter([&](const std::string& name, const ValueReader& reader) {
    const std::size_t tensor = table.find(name);
    if (table.tensor(tensor).group.trainable) return;
    for_each_piece(table.tensor(tensor).size, [&](std::size_t first, std::size_t count) {
      values.resize(count);
      reader(first, values);
      sum += checksum_of(tensor, first, values);
    });
  }));
  return sum;
}

FileCopies copy_weight_headers(parallel::Communicator& ranks, const Task& task) {
  constexpr std::size_t largest_index = std::size_t{64} << 20;
  FileCopies copies;
  if (ranks.size() == 1) return copies;
  parallel::on_first_rank(ranks, [&] { task.read_weight_headers(FileReader(copies, largest_index)); });
  parallel::broadcast_values(
      ranks, [&](ByteWriter& bytes) { bytes.add(copies); }, [&](ByteReader& bytes) { bytes.read(copies); });
  return copies;
}

FilledParameters fill_parameters(const FileReader& files, const Task& task, std::optional<std::uint64_t> seed,
                                 ParameterStore& store, parallel::ShardingStrategy& strategy) {
  TensorInitializer initializer(store, strategy);
  std::set<std::string> given;
  const TensorWriter write([&](const std::string& name, const ValueReader& read) {
    given.insert(name);
    initializer.fill(name, read);
  });
  task.initial_values(files, write);
  initialize_others(store.table().tensors(), given, seed, initializer);
  initialize_others(store.table().state_tensors(), given, seed, initializer);
  FilledParameters filled = std::move(initializer).filled();
  if (strategy.world().rank() == 0) filled.adapted_checksum += checksum_of_rules(store.table());
  return filled;
}

void pass_on(const FilledParameters& filled, const ParameterStore& store, parallel::ShardingStrategy& strategy) {
  const parallel::NamedValue compared("the checksum of the model's weights",
                                      fmt::format("{:016x}", filled.compared_checksum));
  parallel::expect_equal_on_all_ranks(strategy.world(), std::span(&compared, 1));
  for (const FilledPiece& piece : filled.pieces) strategy.copy_tensor(piece.tensor, piece.first, piece.count, piece.by);
  const ExecutionSpace space;
  for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) {
    const Vector<float> state = store.unit_state(unit);
    if (!state.empty())
      strategy.world().broadcast(space, parallel::buffer_of(state), 0, "state of the model").wait(space);
  }
}

void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ShardingStrategy& strategy) {
  const FileCopies headers = copy_weight_headers(strategy.world(), task);
  pass_on(fill_parameters(FileReader(headers), task, seed, store, strategy), store, strategy);
  strategy.sync_parameters(space, ChangedUnits::all);
}

LoadedParameters::LoadedParameters(const ExecutionSpace& space, const Task& task, Precision precision)
    : store_(task.model().table(), precision, ParameterStore::Purpose::inference),
      strategy_(parallel::make_single_process_strategy(store_)) {
  load_initial_parameters(space, task, std::nullopt, store_, *strategy_);
}

}  // namespace mylos::train
