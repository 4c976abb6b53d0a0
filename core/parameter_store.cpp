#include "core/parameter_store.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace mylos {
namespace {

std::size_t columns_of(const ParameterRow& row) { return row.size / row.shape.front(); }

}  // namespace

ParameterStore::ParameterStore(const ParameterTable& table, Precision precision, Purpose purpose)
    : table_(&table), precision_(precision), purpose_(purpose), row_gradients_(table.rows().size()) {
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    const ParameterUnit& description = table.units()[unit];
    const std::size_t trained = purpose == Purpose::training ? description.size : 0;
    values_.push_back(uninitialized<std::byte>(fmt::format("mylos::values::{}", description.name),
                                               description.size * bytes_of(precision)));
    gradients_.emplace_back(fmt::format("mylos::gradients::{}", description.name), trained);
    state_.emplace_back(fmt::format("mylos::state::{}", description.name), table.state_size(unit));
  }
}

std::size_t ParameterStore::bytes() const {
  std::size_t sum = 0;
  for (const auto& values : values_) sum += values.size();
  for (const auto& gradients : gradients_) sum += gradients.size() * sizeof(float);
  for (const auto& state : state_) sum += state.size() * sizeof(float);
  return sum;
}

template <class T>
Vector<T> ParameterStore::unit_values(std::size_t unit) const {
  require(precision_of<T> == precision_, fmt::format("parameter store: asked for {} values, holds {}",
                                                     to_string(precision_of<T>), to_string(precision_)));
  return Vector<T>(reinterpret_cast<T*>(values_[unit].data()), table_->units()[unit].size);
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

Vector<float> ParameterStore::gradient_memory(std::size_t row) const {
  const ParameterRow& description = table_->row(row);
  return slice(gradients_[description.unit], description.offset, description.offset + description.size);
}

void ParameterStore::begin_gradients(const ExecutionSpace& space) const {
  const std::span<const ParameterRow> rows = table_->rows();
  const auto is_written = [&](std::size_t row) { return row_gradients_[row].begin == Begin::written; };
  for (RowGradient& row : row_gradients_) row.untouched = true;
  for (std::size_t row = 0; row < rows.size();) {
    const std::size_t unit = rows[row].unit, first = row++;
    if (is_written(first)) continue;
    // Neighbours are cleared together.
    while (row < rows.size() && rows[row].unit == unit && !is_written(row)) ++row;
    Kokkos::deep_copy(space, slice(gradients_[unit], rows[first].offset, rows[row - 1].offset + rows[row - 1].size),
                      0.0f);
  }
}

bool ParameterStore::begins_gradient(std::size_t first_row, std::size_t count) const {
  require(first_row + count <= row_gradients_.size(), fmt::format("parameter store: gradients of rows {} to {} of {}",
                                                                  first_row, first_row + count, row_gradients_.size()));
  const std::span<RowGradient> rows(row_gradients_.data() + first_row, count);
  if (!std::ranges::all_of(rows, &RowGradient::untouched)) return false;
  for (RowGradient& row : rows) {
    row.untouched = false;
    if (row.begin == Begin::cleared) row.begin = Begin::written;
  }
  return true;
}

void ParameterStore::finish_gradients(const ExecutionSpace& space) const {
  for (std::size_t row = 0; row < row_gradients_.size(); ++row) {
    if (!row_gradients_[row].is_old()) continue;
    Kokkos::deep_copy(space, gradient_memory(row), 0.0f);
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
  for (std::size_t row = first_row; row < first_row + count; ++row) {
    RowGradient& state = row_gradients_[row];
    if (state.is_old()) {
      Kokkos::deep_copy(gradient_memory(row), 0.0f);
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
#undef MYLOS_INSTANTIATE

}  // namespace mylos
