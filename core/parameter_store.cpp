#include "core/parameter_store.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace mylos {
namespace {

std::size_t columns_of(const ParameterRow& row) { return row.size / row.shape.front(); }

}  // namespace

ParameterStore::ParameterStore(const ParameterTable& table, Precision precision, Purpose purpose, StoreLayout layout)
    : table_(&table),
      precision_(precision),
      purpose_(purpose),
      layout_(layout),
      unit_rows_(table.units().size()),
      row_gradients_(table.rows().size()) {
  const bool owns_gradients = purpose == Purpose::training && layout.owns_gradients;
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    const std::string& name = table.units()[unit].name;
    const std::size_t values = layout.owns_values ? capacity(unit) : 0, gradients = owns_gradients ? capacity(unit) : 0;
    values_.push_back(uninitialized<std::byte>(fmt::format("mylos::values::{}", name), values * bytes_of(precision)));
    gradients_.emplace_back(fmt::format("mylos::gradients::{}", name), gradients);
    state_.emplace_back(fmt::format("mylos::state::{}", name), table.state_size(unit));
  }
  // Rows stand unit by unit.
  for (std::size_t row = 0; row < table.rows().size(); ++row) {
    auto& [first, last] = unit_rows_[table.row(row).unit];
    if (last == 0) first = row;
    last = row + 1;
  }
}

std::size_t ParameterStore::capacity(std::size_t unit) const {
  return shard_size(table_->units()[unit].size, layout_.shards) * layout_.shards;
}

std::size_t ParameterStore::largest_capacity() const {
  std::size_t largest = 0;
  for (std::size_t unit = 0; unit < table_->units().size(); ++unit) largest = std::max(largest, capacity(unit));
  return largest;
}

std::size_t ParameterStore::bytes() const {
  std::size_t sum = 0;
  for (const auto& values : values_) sum += values.size();
  for (const auto& gradients : gradients_) sum += gradients.size() * sizeof(float);
  for (const auto& state : state_) sum += state.size() * sizeof(float);
  return sum;
}

void ParameterStore::give_values(std::size_t unit, const Vector<std::byte>& memory) {
  require(!layout_.owns_values && (memory.extent(0) == 0 || memory.size() == capacity(unit) * bytes_of(precision_)),
          fmt::format("parameter store: {} bytes for the values of {}", memory.size(), table_->units()[unit].name));
  values_[unit] = memory;
}

void ParameterStore::set_gradient_source(std::function<Vector<float>(std::size_t unit)> source) {
  require(!layout_.owns_gradients, "parameter store: a source of gradients for one that owns them");
  gradient_source_ = std::move(source);
}

void ParameterStore::take_gradients(std::size_t unit) {
  require(!layout_.owns_gradients, "parameter store: gradients taken from one that owns them");
  gradients_[unit] = {};
}

Vector<float> ParameterStore::unit_gradients(std::size_t unit) const {
  const std::size_t size = std::min(gradients_[unit].size(), table_->units()[unit].size);
  return slice(gradients_[unit], 0, size);
}

template <class T>
Vector<T> ParameterStore::unit_values(std::size_t unit) const {
  require(precision_of<T> == precision_, fmt::format("parameter store: asked for {} values, holds {}",
                                                     to_string(precision_of<T>), to_string(precision_)));
  const ParameterUnit& description = table_->units()[unit];
  require(values_[unit].extent(0) > 0 || description.size == 0,
          fmt::format("parameter store: the values of {} are not here; acquire the unit first", description.name));
  return Vector<T>(reinterpret_cast<T*>(values_[unit].data()), description.size);
}

template <class T>
ConstVector<T> ParameterStore::values(std::size_t row) const {
  return stacked_values<T>(row, 1);
}

template <class T>
ConstMatrix<T> ParameterStore::matrix(std::size_t row) const {
  return stacked_matrix<T>(row, 1);
}

template <class T>
ConstMatrix<T> ParameterStore::stacked_matrix(std::size_t first_row, std::size_t count) const {
  const ConstVector<T> values = stacked_values<T>(first_row, count);
  const std::size_t columns = columns_of(table_->row(first_row));
  return ConstMatrix<T>(values.data(), values.size() / columns, columns);
}

template <class T>
ConstVector<T> ParameterStore::stacked_values(std::size_t first_row, std::size_t count) const {
  const std::size_t size = stacked_size(first_row, count);
  const ParameterRow& row = table_->row(first_row);
  return slice(unit_values<T>(row.unit), row.offset, row.offset + size);
}

Vector<float> ParameterStore::row_gradient(std::size_t row) const {
  const ParameterRow& description = table_->row(row);
  return slice(gradients_[description.unit], description.offset, description.offset + description.size);
}

void ParameterStore::begin_gradients(const ExecutionSpace& space) const {
  space_ = space;
  if (!layout_.owns_gradients) return;  // each unit begins where it is touched
  for (std::size_t unit = 0; unit < gradients_.size(); ++unit) begin_unit(space, unit);
}

void ParameterStore::begin_unit(const ExecutionSpace& space, std::size_t unit) const {
  const auto is_written = [&](std::size_t row) { return row_gradients_[row].begin == Begin::written; };
  const auto [first_row, last_row] = unit_rows_[unit];
  for (std::size_t row = first_row; row < last_row; ++row) row_gradients_[row].untouched = true;
  for (std::size_t row = first_row; row < last_row;) {
    const std::size_t first = row++;
    if (is_written(first)) continue;
    while (row < last_row && !is_written(row)) ++row;  // neighbours are cleared together
    const ParameterRow& last = table_->row(row - 1);
    Kokkos::deep_copy(space, slice(gradients_[unit], table_->row(first).offset, last.offset + last.size), 0.0f);
  }
}

void ParameterStore::touch_gradients(std::size_t unit) const {
  if (layout_.owns_gradients || gradients_[unit].extent(0) > 0 || !gradient_source_) return;
  gradients_[unit] = gradient_source_(unit);
  require(gradients_[unit].size() == capacity(unit), fmt::format("parameter store: {} gradients given for {}",
                                                                 gradients_[unit].size(), table_->units()[unit].name));
  const Vector<float> padding = slice(gradients_[unit], table_->units()[unit].size, capacity(unit));
  if (padding.extent(0) > 0) Kokkos::deep_copy(space_, padding, 0.0f);
  begin_unit(space_, unit);
}

bool ParameterStore::begins_gradient(std::size_t first_row, std::size_t count) const {
  require(first_row + count <= row_gradients_.size(), fmt::format("parameter store: gradients of rows {} to {} of {}",
                                                                  first_row, first_row + count, row_gradients_.size()));
  touch_gradients(table_->row(first_row).unit);
  const std::span<RowGradient> rows(row_gradients_.data() + first_row, count);
  if (!std::ranges::all_of(rows, &RowGradient::untouched)) return false;
  for (RowGradient& row : rows) {
    row.untouched = false;
    if (row.begin == Begin::cleared) row.begin = Begin::written;
  }
  return true;
}

void ParameterStore::finish_gradients(const ExecutionSpace& space, std::size_t unit) const {
  touch_gradients(unit);
  for (std::size_t row = unit_rows_[unit].first; row < unit_rows_[unit].second; ++row) {
    if (!row_gradients_[row].is_old()) continue;
    Kokkos::deep_copy(space, row_gradient(row), 0.0f);
    row_gradients_[row].untouched = false;
  }
}

Vector<float> ParameterStore::gradient(std::size_t row) const { return stacked_gradient(row, 1); }

Matrix<float> ParameterStore::gradient_matrix(std::size_t row) const { return stacked_gradient_matrix(row, 1); }

Matrix<float> ParameterStore::stacked_gradient_matrix(std::size_t first_row, std::size_t count) const {
  const Vector<float> gradient = stacked_gradient(first_row, count);
  const std::size_t columns = columns_of(table_->row(first_row));
  return as_matrix(gradient, gradient.size() / columns, columns);
}

Vector<float> ParameterStore::stacked_gradient(std::size_t first_row, std::size_t count) const {
  require(purpose_ == Purpose::training, "parameter store: gradients of a store that was made for inference");
  const std::size_t size = stacked_size(first_row, count);
  touch_gradients(table_->row(first_row).unit);
  for (std::size_t row = first_row; row < first_row + count; ++row) {
    RowGradient& state = row_gradients_[row];
    if (state.is_old()) {
      Kokkos::deep_copy(space_, row_gradient(row), 0.0f);
      state.begin = Begin::always_cleared;
    }
    state.untouched = false;
  }
  const ParameterRow& row = table_->row(first_row);
  return slice(gradients_[row.unit], row.offset, row.offset + size);
}

Vector<float> ParameterStore::state(std::size_t state_row) const {
  const ParameterRow& row = table_->state_rows()[state_row];
  return slice(state_[row.unit], row.offset, row.offset + row.size);
}

std::size_t ParameterStore::stacked_size(std::size_t first_row, std::size_t count) const {
  require(first_row + count <= table_->rows().size(),
          fmt::format("parameter store: rows {} to {} of {}", first_row, first_row + count, table_->rows().size()));
  const ParameterRow& first = table_->row(first_row);
  std::size_t size = first.size;
  for (std::size_t i = 1; i < count; ++i) {
    const ParameterRow& row = table_->row(first_row + i);
    require(
        row.unit == first.unit && row.offset == first.offset + size && columns_of(row) == columns_of(first),
        fmt::format("parameter store: {} does not stand right after {} with as many columns", row.name, first.name));
    size += row.size;
  }
  return size;
}

#define MYLOS_INSTANTIATE(T)                                                                 \
  template Vector<T> ParameterStore::unit_values<T>(std::size_t) const;                      \
  template ConstVector<T> ParameterStore::values<T>(std::size_t) const;                      \
  template ConstMatrix<T> ParameterStore::matrix<T>(std::size_t) const;                      \
  template ConstMatrix<T> ParameterStore::stacked_matrix<T>(std::size_t, std::size_t) const; \
  template ConstVector<T> ParameterStore::stacked_values<T>(std::size_t, std::size_t) const;
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
