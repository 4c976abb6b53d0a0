#include "train/initial_parameters.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <vector>

namespace mylos::train {
namespace {

/// The row's initial values.
std::vector<float> initial_values(const Task& task, const ParameterRow& row, std::optional<std::uint64_t> seed) {
  std::vector<float> values(row.size);
  if (task.initial_values(row, values)) return values;
  if (!seed) fail(fmt::format("the model has no {}: it was not fine-tuned for this task; train it first", row.name));
  initialize(row, *seed, values);
  return values;
}

}  // namespace

void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ParameterMode& mode) {
  const ParameterTable& table = store.table();
  for (std::size_t row = 0; row < table.rows().size(); ++row) {
    mode.write_row(row, initial_values(task, table.row(row), seed));
  }
  for (std::size_t row = 0; row < table.state_rows().size(); ++row) {
    const std::vector<float> values = initial_values(task, table.state_rows()[row], seed);
    const Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged> source(values.data(), values.size());
    Kokkos::deep_copy(store.state(row), source);
  }
  mode.publish_values(space);
}

}  // namespace mylos::train
