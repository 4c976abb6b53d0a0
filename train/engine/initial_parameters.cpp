#include "train/engine/initial_parameters.hpp"

#include "core/base/error.hpp"
#include "train/engine/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace mylos::train {
namespace {

/// Fills this rank's part of one row after the other.
class RowFiller {
 public:
  RowFiller(ParameterStore& store, parallel::ParameterMode& mode) : table_(store.table()), store_(store), mode_(mode) {}

  /// The row called `name`, a parameter or state. Errors: std::invalid_argument where there is none.
  void fill(const std::string& name, const ValueReader& read) {
    const auto states = table_.state_rows();
    if (std::ranges::find(states, name, &ParameterRow::name) != states.end()) return fill_state(name, read);
    const std::size_t row = table_.find(name);
    fill_pieces(mode_.owned_range(row), read,
                [&](std::size_t first, std::span<const float> values) { mode_.write_row(row, first, values); });
  }

 private:
  /// Every rank has all of it.
  void fill_state(const std::string& name, const ValueReader& read) {
    const std::size_t row = table_.find_state(name);
    const auto state = store_.state(row);
    fill_pieces({0, state.size()}, read, [&](std::size_t first, std::span<const float> values) {
      const Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged> source(values.data(), values.size());
      Kokkos::deep_copy(slice(state, first, first + values.size()), source);
    });
  }

  template <class Write>
  void fill_pieces(const RowRange& range, const ValueReader& read, const Write& write) {
    for_each_piece(range.size(), [&](std::size_t first, std::size_t count) {
      piece_.resize(count);
      read(range.begin + first, piece_);
      write(range.begin + first, std::span<const float>(piece_));
    });
  }

  const ParameterTable& table_;
  ParameterStore& store_;
  parallel::ParameterMode& mode_;
  std::vector<float> piece_;
};

/// Fills every row that the task gave no values for.
void initialize_others(std::span<const ParameterRow> rows, const std::set<std::string>& given,
                       std::optional<std::uint64_t> seed, RowFiller& filler) {
  for (const ParameterRow& row : rows) {
    if (given.contains(row.name)) continue;
    if (!seed) {
      fail(fmt::format("the model has no {}: it was not fine-tuned for this task; train it first", row.name));
    }
    filler.fill(row.name, [&](std::size_t first, std::span<float> values) { initialize(row, *seed, first, values); });
  }
}

}  // namespace

void fill_parameters(const Task& task, std::optional<std::uint64_t> seed, ParameterStore& store,
                     parallel::ParameterMode& mode) {
  RowFiller filler(store, mode);
  std::set<std::string> given;
  task.initial_values(RowWriter([&](const std::string& name, const ValueReader& read) {
    given.insert(name);
    filler.fill(name, read);
  }));
  initialize_others(store.table().rows(), given, seed, filler);
  initialize_others(store.table().state_rows(), given, seed, filler);
}

void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ParameterMode& mode) {
  fill_parameters(task, seed, store, mode);
  mode.publish_values(space);
}

}  // namespace mylos::train
