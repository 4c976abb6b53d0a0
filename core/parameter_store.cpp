#include "core/parameter_store.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace mylos {
namespace {

std::size_t columns_of(const ParameterTensor& tensor) { return tensor.size / tensor.shape.front(); }

bool is_frozen_vector(const ParameterTensor& tensor) { return !tensor.group.trainable && tensor.shape.size() == 1; }

/// Returns where the unread gradient of each frozen vector begins.
std::vector<std::size_t> unread_offsets(const ParameterTable& table) {
  std::vector<std::size_t> offsets, used(table.units().size());
  for (const ParameterTensor& tensor : table.tensors()) {
    offsets.push_back(used[tensor.unit]);
    if (is_frozen_vector(tensor)) used[tensor.unit] += tensor.size;
  }
  return offsets;
}

}  // namespace

std::size_t unread_gradients(const ParameterTable& table) {
  const std::vector<std::size_t> offsets = unread_offsets(table);
  std::size_t most = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const ParameterTensor& tensor = table.tensor(i);
    if (is_frozen_vector(tensor)) most = std::max(most, offsets[i] + tensor.size);
  }
  return most;
}

ParameterStore::ParameterStore(const ParameterTable& table, Precision precision, Purpose purpose, StoreLayout layout)
    : table_(&table),
      precision_(precision),
      purpose_(purpose),
      layout_(layout),
      unit_tensors_(table.units().size()),
      tensor_gradients_(table.tensors().size()),
      unread_offsets_(unread_offsets(table)) {
  if (purpose == Purpose::training) unread_ = Vector<float>("mylos::gradients::frozen", unread_gradients(table));
  const bool owns_gradients = purpose == Purpose::training && layout.owns_gradients;
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    const std::string& name = table.units()[unit].name;
    const std::size_t values = layout.owns_values ? capacity(unit) : 0,
                      gradients = owns_gradients ? gradient_capacity(unit) : 0;
    values_.push_back(uninitialized<std::byte>(fmt::format("mylos::values::{}", name), values * bytes_of(precision)));
    gradients_.emplace_back(fmt::format("mylos::gradients::{}", name), gradients);
    state_.emplace_back(fmt::format("mylos::state::{}", name), table.state_size(unit));
  }
  for (std::size_t tensor = 0; tensor < table.tensors().size(); ++tensor) {
    unit_tensors_[table.tensor(tensor).unit].push_back(tensor);
  }
}

std::size_t ParameterStore::capacity(std::size_t unit) const {
  return shard_size(table_->units()[unit].size, layout_.shards) * layout_.shards;
}

std::size_t ParameterStore::largest_capacity() const {
  std::size_t largest = 0;
  for (std::size_t unit = 0; unit < table_->network_units(); ++unit) {
    std::size_t whole = 0;
    for (const std::size_t part : table_->parts(unit)) whole += capacity(part);
    largest = std::max(largest, whole);
  }
  return largest;
}

std::size_t ParameterStore::gradient_capacity(std::size_t unit) const {
  return table_->units()[unit].trained ? capacity(unit) : 0;
}

std::size_t ParameterStore::largest_gradient_capacity() const {
  std::size_t largest = 0;
  for (std::size_t unit = 0; unit < table_->units().size(); ++unit) {
    largest = std::max(largest, gradient_capacity(unit));
  }
  return largest;
}

std::size_t ParameterStore::bytes() const {
  std::size_t sum = unread_.size() * sizeof(float);
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
ConstVector<T> ParameterStore::values(std::size_t tensor) const {
  return stacked_values<T>(tensor, 1);
}

template <class T>
ConstMatrix<T> ParameterStore::matrix(std::size_t tensor) const {
  return stacked_matrix<T>(tensor, 1);
}

template <class T>
ConstMatrix<T> ParameterStore::stacked_matrix(std::size_t first_tensor, std::size_t count) const {
  const ConstVector<T> values = stacked_values<T>(first_tensor, count);
  const std::size_t columns = columns_of(table_->tensor(first_tensor));
  return ConstMatrix<T>(values.data(), values.size() / columns, columns);
}

template <class T>
ConstVector<T> ParameterStore::stacked_values(std::size_t first_tensor, std::size_t count) const {
  const std::size_t size = stacked_size(first_tensor, count);
  const ParameterTensor& tensor = table_->tensor(first_tensor);
  return slice(unit_values<T>(tensor.unit), tensor.offset, tensor.offset + size);
}

Vector<float> ParameterStore::tensor_gradient(std::size_t tensor) const {
  const ParameterTensor& description = table_->tensor(tensor);
  return slice(gradients_[description.unit], description.offset, description.offset + description.size);
}

void ParameterStore::begin_gradients(const ExecutionSpace& space) const {
  space_ = space;
  if (!layout_.owns_gradients) return;  // each unit begins at its first access
  for (std::size_t unit = 0; unit < gradients_.size(); ++unit) begin_unit(space, unit);
}

void ParameterStore::begin_unit(const ExecutionSpace& space, std::size_t unit) const {
  const auto is_written = [&](std::size_t tensor) { return tensor_gradients_[tensor].begin == Begin::written; };
  const std::vector<std::size_t>& tensors = unit_tensors_[unit];
  if (gradients_[unit].extent(0) == 0) return;
  for (const std::size_t tensor : tensors) tensor_gradients_[tensor].untouched = true;
  for (std::size_t i = 0; i < tensors.size();) {
    const std::size_t first = tensors[i++];
    if (is_written(first)) continue;
    while (i < tensors.size() && !is_written(tensors[i])) ++i;  // consecutive tensors are cleared together
    const ParameterTensor& last = table_->tensor(tensors[i - 1]);
    Kokkos::deep_copy(space, slice(gradients_[unit], table_->tensor(first).offset, last.offset + last.size), 0.0f);
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

bool ParameterStore::begins_gradient(std::size_t first_tensor, std::size_t count) const {
  require(first_tensor + count <= tensor_gradients_.size(),
          fmt::format("parameter store: gradients of tensors {} to {} of {}", first_tensor, first_tensor + count,
                      tensor_gradients_.size()));
  touch_gradients(table_->tensor(first_tensor).unit);
  const std::span<TensorGradient> tensors(tensor_gradients_.data() + first_tensor, count);
  if (!std::ranges::all_of(tensors, &TensorGradient::untouched)) return false;
  for (TensorGradient& tensor : tensors) {
    tensor.untouched = false;
    if (tensor.begin == Begin::cleared) tensor.begin = Begin::written;
  }
  return true;
}

void ParameterStore::finish_gradients(const ExecutionSpace& space, std::size_t unit) const {
  touch_gradients(unit);
  for (const std::size_t tensor : unit_tensors_[unit]) {
    // A product for several tensors also writes the gradients of those that are frozen.
    const bool is_written = !trains(tensor) && !tensor_gradients_[tensor].untouched;
    if (!is_written && !tensor_gradients_[tensor].is_old()) continue;
    Kokkos::deep_copy(space, tensor_gradient(tensor), 0.0f);
    tensor_gradients_[tensor].untouched = false;
  }
}

bool ParameterStore::trains(std::size_t first_tensor, std::size_t count) const {
  return std::ranges::any_of(table_->tensors().subspan(first_tensor, count),
                             [](const ParameterTensor& tensor) { return tensor.group.trainable; });
}

Vector<float> ParameterStore::gradient(std::size_t tensor) const { return stacked_gradient(tensor, 1); }

Matrix<float> ParameterStore::gradient_matrix(std::size_t tensor) const { return stacked_gradient_matrix(tensor, 1); }

Matrix<float> ParameterStore::stacked_gradient_matrix(std::size_t first_tensor, std::size_t count) const {
  const Vector<float> gradient = stacked_gradient(first_tensor, count);
  const std::size_t columns = columns_of(table_->tensor(first_tensor));
  return as_matrix(gradient, gradient.size() / columns, columns);
}

Vector<float> ParameterStore::stacked_gradient(std::size_t first_tensor, std::size_t count) const {
  require(purpose_ == Purpose::training, "parameter store: gradients of a store that was made for inference");
  const std::size_t size = stacked_size(first_tensor, count);
  if (!trains(first_tensor, count)) {
    const ParameterTensor& first = table_->tensor(first_tensor);
    require(first.shape.size() == 1, fmt::format("parameter store: the gradient of {}, which is frozen", first.name));
    return slice(unread_, unread_offsets_[first_tensor], unread_offsets_[first_tensor] + size);
  }
  touch_gradients(table_->tensor(first_tensor).unit);
  for (std::size_t tensor = first_tensor; tensor < first_tensor + count; ++tensor) {
    TensorGradient& state = tensor_gradients_[tensor];
    if (state.is_old()) {
      Kokkos::deep_copy(space_, tensor_gradient(tensor), 0.0f);
      state.begin = Begin::always_cleared;
    }
    state.untouched = false;
  }
  const ParameterTensor& tensor = table_->tensor(first_tensor);
  return slice(gradients_[tensor.unit], tensor.offset, tensor.offset + size);
}

Vector<float> ParameterStore::state(std::size_t state_tensor) const {
  const ParameterTensor& tensor = table_->state_tensors()[state_tensor];
  return slice(state_[tensor.unit], tensor.offset, tensor.offset + tensor.size);
}

std::size_t ParameterStore::stacked_size(std::size_t first_tensor, std::size_t count) const {
  require(first_tensor + count <= table_->tensors().size(),
          fmt::format("parameter store: tensors {} to {} of {}", first_tensor, first_tensor + count,
                      table_->tensors().size()));
  const ParameterTensor& first = table_->tensor(first_tensor);
  std::size_t size = first.size;
  for (std::size_t i = 1; i < count; ++i) {
    const ParameterTensor& tensor = table_->tensor(first_tensor + i);
    require(
        tensor.unit == first.unit && tensor.offset == first.offset + size && columns_of(tensor) == columns_of(first),
        fmt::format("parameter store: {} does not follow {} directly, or has another number of columns", tensor.name,
                    first.name));
    size += tensor.size;
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
