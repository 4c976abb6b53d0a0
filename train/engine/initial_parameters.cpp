#include "train/engine/initial_parameters.hpp"

#include "core/base/error.hpp"
#include "train/engine/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace mylos::train {
namespace {

/// Fills this rank's part of one row after the other: of what several ranks own, its turns.
class RowFiller {
 public:
  RowFiller(ParameterStore& store, parallel::ParameterMode& mode)
      : table_(store.table()), store_(store), mode_(mode), copies_(mode.copies().size()), copy_(mode.copies().rank()) {}

  /// The row called `name`, a parameter or state. Errors: std::invalid_argument where there is none.
  void fill(const std::string& name, const ValueReader& read) {
    const auto states = table_.state_rows();
    if (std::ranges::find(states, name, &ParameterRow::name) != states.end()) return fill_state(name, read);
    const std::size_t row = table_.find(name);
    const RowRange owned = mode_.owned_range(row);
    for_each_piece(owned.size(), [&](std::size_t first, std::size_t count) {
      const FilledPiece piece{row, owned.begin + first, count, filled_.size() % copies_};
      filled_.push_back(piece);
      if (piece.by == copy_) mode_.write_row(row, piece.first, read_piece(read, piece.first, count));
    });
  }
  /// Of all ranks that own the same.
  std::vector<FilledPiece> filled() && { return std::move(filled_); }

 private:
  /// Every rank has all of it.
  void fill_state(const std::string& name, const ValueReader& read) {
    const std::size_t row = table_.find_state(name);
    const auto state = store_.state(row);
    for_each_piece(state.size(), [&](std::size_t first, std::size_t count) {
      const std::span<const float> values = read_piece(read, first, count);
      const Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged> source(values.data(), values.size());
      Kokkos::deep_copy(slice(state, first, first + count), source);
    });
  }

  /// Valid until the next call.
  std::span<const float> read_piece(const ValueReader& read, std::size_t first, std::size_t count) {
    piece_.resize(count);
    read(first, piece_);
    return piece_;
  }

  const ParameterTable& table_;
  ParameterStore& store_;
  parallel::ParameterMode& mode_;
  std::size_t copies_, copy_;
  std::vector<FilledPiece> filled_;
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

std::vector<FilledPiece> fill_parameters(const Task& task, std::optional<std::uint64_t> seed, ParameterStore& store,
                                         parallel::ParameterMode& mode) {
  RowFiller filler(store, mode);
  std::set<std::string> given;
  task.initial_values(RowWriter([&](const std::string& name, const ValueReader& read) {
    given.insert(name);
    filler.fill(name, read);
  }));
  initialize_others(store.table().rows(), given, seed, filler);
  initialize_others(store.table().state_rows(), given, seed, filler);
  return std::move(filler).filled();
}

void pass_on(std::span<const FilledPiece> pieces, parallel::ParameterMode& mode) {
  for (const FilledPiece& piece : pieces) mode.copy_row(piece.row, piece.first, piece.count, piece.by);
}

void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ParameterMode& mode) {
  pass_on(fill_parameters(task, seed, store, mode), mode);
  mode.publish_values(space);
}

}  // namespace mylos::train
