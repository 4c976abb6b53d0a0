#pragma once

#include "core/batch_rows.hpp"
#include "core/batch_shape.hpp"
#include "core/device.hpp"
#include "core/index_groups.hpp"
#include "core/parameter_store.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The interface between data and models: named device arrays with sample boundaries. A sample consists of rows, which
/// are tokens or images. Samples of different length are packed one after the other, without padding.
namespace mylos {

/// Samples packed row after row. The same object is refilled for every micro-batch; its memory grows to the largest
/// batch seen and is kept. On a device, copies and the kernels that locate rows run on their own queue and use other
/// memory than the previous batch, so they overlap with the computation on that batch. Kernels that read a batch must
/// be launched on ExecutionSpace(), which waits for the queue; the host does not wait.
class Batch {
 public:
  using Purpose = ParameterStore::Purpose;

  /// Every array is allocated once, with room for batches up to `largest`. Batches for inference are not grouped,
  /// because only gradients need groups.
  explicit Batch(const BatchShape& largest = {}, Purpose purpose = Purpose::training)
      : largest_(largest), purpose_(purpose) {}

  /// Begins a new batch without arrays: sample i has lengths[i] rows and is element sample_ids[i] of the global batch.
  /// Its first row has position first_positions[i]; 0 if `first_positions` is empty.
  void reset(std::span<const std::size_t> lengths, std::span<const std::uint32_t> sample_ids,
             std::span<const std::size_t> first_positions = {});
  /// Copies `values` to the device under `name`, replacing any earlier values.
  void set(std::string_view name, std::span<const std::int32_t> values);
  void set(std::string_view name, std::span<const float> values);
  void set(std::string_view name, std::span<const std::uint8_t> values);
  /// Like `set`, for indices into a table. A batch for training also groups the rows by value. Errors:
  /// std::invalid_argument if it groups rows and a value is negative.
  void set_indices(std::string_view name, std::span<const std::int32_t> values);
  /// In training, groups the rows by position, for models with a table of positions. Errors: std::invalid_argument if
  /// the batch has first positions.
  void group_positions();

  const BatchShape& shape() const { return shape_; }
  /// (S+1) first row of each sample; the last element is T.
  ConstVector<std::size_t> sample_starts() const { return slice<std::size_t>(memory(starts_), 0, shape_.samples + 1); }
  /// The same on the host.
  std::span<const std::size_t> host_sample_starts() const { return host_starts_; }
  /// (S) position of each sample in the global batch. It selects the sample's random numbers.
  ConstVector<std::uint32_t> sample_ids() const { return slice<std::uint32_t>(memory(ids_), 0, shape_.samples); }
  /// (T) position of each row within its sample, and the sample of each row. Computed on the device.
  ConstVector<std::int32_t> positions() const { return slice<std::int32_t>(memory(positions_), 0, shape_.rows); }
  ConstVector<std::uint32_t> samples_of_rows() const { return slice<std::uint32_t>(memory(samples_), 0, shape_.rows); }

  /// Returns the array called `name`. Errors: std::invalid_argument that lists the arrays present.
  ConstVector<std::int32_t> integers(std::string_view name) const;
  ConstVector<float> floats(std::string_view name) const;
  ConstVector<std::uint8_t> bytes(std::string_view name) const;
  /// Returns whether an array of any type is called `name`.
  bool has(std::string_view name) const;
  /// Returns the groups of an array set by `set_indices`. Errors: std::invalid_argument if there are none.
  IndexGroups groups(std::string_view name) const;
  /// Returns the number of distinct values of an array set by `set_indices`; 0 if it was not grouped.
  std::size_t distinct(std::string_view name) const;
  /// Returns the groups of `group_positions`. Errors: std::invalid_argument if there are none.
  IndexGroups position_groups() const;

 private:
  /// Double buffer: consecutive batches use alternate slots. On a host, where nothing runs asynchronously, there is one
  /// slot.
  static constexpr std::size_t slots = runs_on_host ? 1 : 2;

  /// An array on the device.
  template <class T>
  struct DeviceArray {
    Vector<T> memory[slots];
  };
  /// An array on the device, and the host memory it is copied from.
  template <class T>
  struct Upload : DeviceArray<T> {
    PinnedVector<T> staged[slots];
    std::size_t batch = 0;  ///< last batch that was copied into it
  };

  template <class T>
  struct Field {
    Upload<T> values;
    std::size_t size = 0;
    bool is_set = false;  ///< set since the batch began
  };

  struct Groups {
    Upload<std::int32_t> values;
    Upload<std::uint32_t> starts, rows;
    std::size_t count = 0, size = 0;
    bool is_set = false;
  };
  struct PositionGroups {
    DeviceArray<std::int32_t> values;
    DeviceArray<std::uint32_t> starts, rows;
    bool is_set = false;
  };

  template <class T>
  const Vector<T>& memory(const DeviceArray<T>& array) const {
    return array.memory[batches_ % slots];
  }
  const Groups* find_groups(std::string_view name) const;
  std::size_t room_for(std::size_t size) const;
  template <class T>
  Vector<T> reserve(const std::string& label, std::size_t size, DeviceArray<T>& array, std::size_t capacity);
  void hold_up_kernels();
  void locate();
  template <class T>
  void upload(const std::string& label, std::span<const T> values, Upload<T>& to, std::size_t capacity = 0);
  template <class T>
  using Fields = std::map<std::string, Field<T>, std::less<>>;
  template <class T>
  void set_field(Fields<T>& fields, std::string_view name, std::span<const T> values);
  template <class T>
  ConstVector<T> find_field(const Fields<T>& fields, std::string_view name, std::string_view kind) const;

  BatchShape largest_, shape_;
  Purpose purpose_;
  ExecutionSpace queue_ = make_queue();
  LaunchMark uploaded_;
  std::size_t batches_ = 0;  ///< number of batches begun
  LaunchMark marks_[2];      ///< per slot, after all work on the slot's batch
  std::vector<std::size_t> host_starts_;
  Upload<std::size_t> starts_, first_positions_;
  Upload<std::uint32_t> ids_;
  bool begins_at_zero_ = true;  ///< every sample's first position is 0
  DeviceArray<std::int32_t> positions_;
  DeviceArray<std::uint32_t> samples_;
  Fields<std::int32_t> integers_;
  Fields<float> floats_;
  Fields<std::uint8_t> bytes_;
  IndexGrouper grouper_;
  std::map<std::string, Groups, std::less<>> groups_;
  PositionGroups position_groups_;
};

}  // namespace mylos
