#include "core/batch.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace mylos {
namespace {

/// Marks all fields as unset. Their memory is kept for the next batch.
template <class Fields>
void forget(Fields& fields) {
  for (auto& named : fields) named.second.is_set = false;
}

}  // namespace

template <class T>
ConstVector<T> Batch::find_field(const Fields<T>& fields, std::string_view name, std::string_view kind) const {
  const auto found = fields.find(name);
  if (found == fields.end() || !found->second.is_set) {
    std::vector<std::string_view> names;
    for (const auto& [other, field] : fields) {
      if (field.is_set) names.push_back(other);
    }
    require(false, fmt::format("batch: no {} array \"{}\"; there are: {}", kind, name, fmt::join(names, ", ")));
  }
  return slice(memory(found->second.values), 0, found->second.size);
}

/// Returns the capacity for an array that has `size` elements in this batch: as many elements per row, for the rows of
/// the largest batch plus one.
std::size_t Batch::room_for(std::size_t size) const {
  return (size + shape_.rows - 1) / std::max<std::size_t>(shape_.rows, 1) * (largest_.rows + 1);
}

/// Returns the front of the array in this batch's slot. If it is too small, it grows to at least `capacity`, in all
/// slots, so that later batches need no allocation.
template <class T>
Vector<T> Batch::reserve(const std::string& label, std::size_t size, DeviceArray<T>& array, std::size_t capacity) {
  if (memory(array).size() < size) {
    for (Vector<T>& each : array.memory) each = uninitialized<T>(label, std::max(size, capacity));
  }
  return slice(memory(array), 0, size);
}

/// Makes later kernels wait for all copies and kernels on the queue; the host does not wait.
void Batch::hold_up_kernels() {
  uploaded_.set(queue_);
  uploaded_.hold_up(ExecutionSpace());
}

/// Copies host values to the front of the array, which grows to at least `capacity` if it is too small.
template <class T>
void Batch::upload(const std::string& label, std::span<const T> values, Upload<T>& to, std::size_t capacity) {
  const std::size_t size = values.size(), room = std::max({capacity, size, room_for(size)});
  // The device arrays are replaced first: freeing them waits for the device, so no copy still reads the old staging
  // memory.
  const Vector<T> memory = reserve(label, size, to, room);
  if constexpr (runs_on_host) {
    const Kokkos::View<const T*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged> source(values.data(), size);
    Kokkos::deep_copy(queue_, memory, source);  // has ended when it returns, and needs no fence
  } else {
    PinnedVector<T>& staged = to.staged[batches_ % slots];
    if (staged.size() < size) {
      for (PinnedVector<T>& each : to.staged) {
        each = PinnedVector<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), room);
      }
    }
    if (to.batch == batches_) {  // set twice: the first copy may still be running or in use
      queue_.fence("mylos::Batch::upload");
      ExecutionSpace().fence("mylos::Batch::upload");
    }
    to.batch = batches_;
    const auto source = Kokkos::subview(staged, Kokkos::make_pair(std::size_t{0}, size));
    std::ranges::copy(values, source.data());
    Kokkos::deep_copy(queue_, memory, source);
    hold_up_kernels();
  }
}

void Batch::reset(std::span<const std::size_t> lengths, std::span<const std::uint32_t> sample_ids,
                  std::span<const std::size_t> first_positions) {
  require(lengths.size() == sample_ids.size() && !lengths.empty(),
          fmt::format("batch: {} lengths for {} samples", lengths.size(), sample_ids.size()));
  require(first_positions.empty() || first_positions.size() == lengths.size(),
          fmt::format("batch: {} first positions for {} samples", first_positions.size(), lengths.size()));
  shape_ = {lengths.size(), 0, 0};
  marks_[batches_ % 2].set(ExecutionSpace());
  marks_[++batches_ % 2].wait();
  forget(integers_);
  forget(floats_);
  forget(bytes_);
  forget(groups_);
  position_groups_.is_set = false;
  host_starts_.assign(1, 0);
  for (const std::size_t length : lengths) {
    shape_.rows += length;
    shape_.longest = std::max(shape_.longest, length);
    host_starts_.push_back(shape_.rows);
  }
  upload<std::size_t>("mylos::Batch::sample_starts", host_starts_, starts_);
  upload<std::uint32_t>("mylos::Batch::sample_ids", sample_ids, ids_);
  begins_at_zero_ = first_positions.empty();
  if (!begins_at_zero_) upload<std::size_t>("mylos::Batch::first_positions", first_positions, first_positions_);
  locate();
}

/// Computes the position and the sample of each row on the queue, after the copies that it reads.
void Batch::locate() {
  const std::size_t rows = shape_.rows, room = room_for(rows);
  const auto positions = reserve("mylos::Batch::positions", rows, positions_, room);
  const auto samples = reserve("mylos::Batch::samples_of_rows", rows, samples_, room);
  const std::size_t first_positions = begins_at_zero_ ? 0 : shape_.samples;
  locate_rows(queue_, {sample_starts(), slice<std::size_t>(memory(first_positions_), 0, first_positions)}, positions,
              samples);
  hold_up_kernels();
}

void Batch::group_positions() {
  if (purpose_ == Purpose::inference) return;
  require(begins_at_zero_, "batch: rows with first positions cannot be grouped by position");
  PositionGroups& groups = position_groups_;
  const std::size_t longest = shape_.longest, room = std::max(longest, largest_.longest);
  const auto values = reserve("mylos::Batch::position_values", longest, groups.values, room);
  const auto starts = reserve("mylos::Batch::position_starts", longest + 1, groups.starts, room + 1);
  const auto rows = reserve("mylos::Batch::position_rows", shape_.rows, groups.rows, room_for(shape_.rows));
  group_rows_by_position(queue_, sample_starts(), values, starts, rows);
  hold_up_kernels();
  groups.is_set = true;
}

IndexGroups Batch::position_groups() const {
  const PositionGroups& groups = position_groups_;
  require(groups.is_set, purpose_ == Purpose::inference ? "batch: made for inference, which groups no positions"
                                                        : "batch: group_positions was not called");
  const std::size_t longest = shape_.longest;
  return {slice(memory(groups.values), 0, longest), slice(memory(groups.starts), 0, longest + 1),
          slice(memory(groups.rows), 0, shape_.rows)};
}

template <class T>
void Batch::set_field(Fields<T>& fields, std::string_view name, std::span<const T> values) {
  Field<T>& field = fields[std::string(name)];
  upload<T>(fmt::format("mylos::Batch::{}", name), values, field.values);
  field.size = values.size();
  field.is_set = true;
}

void Batch::set(std::string_view name, std::span<const std::int32_t> values) { set_field(integers_, name, values); }

void Batch::set(std::string_view name, std::span<const float> values) { set_field(floats_, name, values); }

void Batch::set(std::string_view name, std::span<const std::uint8_t> values) { set_field(bytes_, name, values); }

void Batch::set_indices(std::string_view name, std::span<const std::int32_t> values) {
  set(name, values);
  if (purpose_ == Purpose::inference) return;
  grouper_.group(name, values);
  Groups& groups = groups_[std::string(name)];
  groups.count = grouper_.values().size();
  groups.size = values.size();
  groups.is_set = true;
  upload<std::int32_t>(fmt::format("mylos::Batch::{}_values", name), grouper_.values(), groups.values, values.size());
  upload<std::uint32_t>(fmt::format("mylos::Batch::{}_starts", name), grouper_.starts(), groups.starts,
                        values.size() + 1);
  upload<std::uint32_t>(fmt::format("mylos::Batch::{}_rows", name), grouper_.rows(), groups.rows);
}

/// Returns the groups of an array; null if it was not grouped.
const Batch::Groups* Batch::find_groups(std::string_view name) const {
  const auto found = groups_.find(name);
  return found != groups_.end() && found->second.is_set ? &found->second : nullptr;
}

IndexGroups Batch::groups(std::string_view name) const {
  const Groups* const groups = find_groups(name);
  require(groups != nullptr, purpose_ == Purpose::inference
                                 ? fmt::format("batch: made for inference, which does not group \"{}\"", name)
                                 : fmt::format("batch: \"{}\" was not set as indices", name));
  return {slice(memory(groups->values), 0, groups->count), slice(memory(groups->starts), 0, groups->count + 1),
          slice(memory(groups->rows), 0, groups->size)};
}

std::size_t Batch::distinct(std::string_view name) const {
  const Groups* const groups = find_groups(name);
  return groups == nullptr ? 0 : groups->count;
}

ConstVector<std::int32_t> Batch::integers(std::string_view name) const {
  return find_field(integers_, name, "integer");
}

ConstVector<float> Batch::floats(std::string_view name) const { return find_field(floats_, name, "float"); }

ConstVector<std::uint8_t> Batch::bytes(std::string_view name) const { return find_field(bytes_, name, "byte"); }

bool Batch::has(std::string_view name) const {
  const auto is_set = [name](const auto& fields) {
    const auto found = fields.find(name);
    return found != fields.end() && found->second.is_set;
  };
  return is_set(integers_) || is_set(floats_) || is_set(bytes_);
}

}  // namespace mylos
