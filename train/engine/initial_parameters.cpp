#include "train/engine/initial_parameters.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace mylos::train {
namespace {

using Write = std::function<void(std::size_t row, std::span<const float> values)>;

/// Calls `write` for every row that the task gave no values for.
void initialize_others(std::span<const ParameterRow> rows, const std::set<std::string>& given,
                       std::optional<std::uint64_t> seed, const Write& write) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (given.contains(rows[row].name)) continue;
    if (!seed) {
      fail(fmt::format("the model has no {}: it was not fine-tuned for this task; train it first", rows[row].name));
    }
    std::vector<float> values(rows[row].size);
    initialize(rows[row], *seed, values);
    write(row, values);
  }
}

bool has_row(std::span<const ParameterRow> rows, const std::string& name) {
  return std::ranges::find(rows, name, &ParameterRow::name) != rows.end();
}

}  // namespace

void fill_parameters(const Task& task, std::optional<std::uint64_t> seed, ParameterStore& store,
                     parallel::ParameterMode& mode) {
  const ParameterTable& table = store.table();
  const Write write_parameter = [&](std::size_t row, std::span<const float> values) { mode.write_row(row, values); };
  const Write write_state = [&](std::size_t row, std::span<const float> values) {
    const Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged> source(values.data(), values.size());
    Kokkos::deep_copy(store.state(row), source);
  };
  std::set<std::string> given;
  task.initial_values([&](const std::string& name, std::span<const float> values) {
    given.insert(name);
    if (has_row(table.state_rows(), name)) return write_state(table.find_state(name), values);
    write_parameter(table.find(name), values);
  });
  initialize_others(table.rows(), given, seed, write_parameter);
  initialize_others(table.state_rows(), given, seed, write_state);
}

void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ParameterMode& mode) {
  fill_parameters(task, seed, store, mode);
  mode.publish_values(space);
}

}  // namespace mylos::train
