#pragma once

#include "core/device.hpp"

#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The seam between data and models: named device arrays with sample boundaries. Samples of unlike length are packed
/// one after the other, without padding.
namespace mylos {

/// How large a batch is, which is all that memory is planned from.
struct BatchShape {
  std::size_t samples = 0;  ///< S
  std::size_t rows = 0;     ///< T, of all samples together
  std::size_t longest = 0;  ///< rows of the longest sample
};

/// The rows of an index array grouped by value: what the gradient of a gathered table is summed by.
struct IndexGroups {
  ConstVector<std::int32_t> values;   ///< (U) each value that occurs, ascending
  ConstVector<std::uint32_t> starts;  ///< (U+1) where each group begins in `rows`
  ConstVector<std::uint32_t> rows;    ///< (T) rows, ascending within a group
};

/// Samples packed row after row. Refilled for every micro-batch; memory grows to the largest seen and stays. Copies to
/// a device have a queue of their own, and go to other memory than the batch before: they run while the device computes
/// with that one. Whatever reads a batch is launched on ExecutionSpace(), which waits for the copies; the host does
/// not.
class Batch {
 public:
  /// Memory of each array is taken once for batches up to `largest`.
  explicit Batch(const BatchShape& largest = {}) : largest_(largest) {}

  /// Begins a new batch without arrays: sample i has lengths[i] rows and is element sample_ids[i] of the global batch.
  void reset(std::span<const std::size_t> lengths, std::span<const std::uint32_t> sample_ids);
  /// Copies `values` to the device under `name`; replaces what was there.
  void set(std::string_view name, std::span<const std::int32_t> values);
  void set(std::string_view name, std::span<const float> values);
  void set(std::string_view name, std::span<const std::uint8_t> values);
  /// As `set` for indices into a table, and groups them by value.
  void set_indices(std::string_view name, std::span<const std::int32_t> values);

  const BatchShape& shape() const { return shape_; }
  /// (S+1) row where each sample begins; the last is T.
  ConstVector<std::size_t> sample_starts() const { return slice<std::size_t>(memory(starts_), 0, shape_.samples + 1); }
  /// The same on the host.
  std::span<const std::size_t> host_sample_starts() const { return host_starts_; }
  /// (S) place of each sample in the global batch: what random numbers are drawn by.
  ConstVector<std::uint32_t> sample_ids() const { return slice<std::uint32_t>(memory(ids_), 0, shape_.samples); }
  /// (T) row within its sample, and the sample of each row.
  ConstVector<std::uint32_t> positions() const { return slice<std::uint32_t>(memory(positions_), 0, shape_.rows); }
  ConstVector<std::uint32_t> samples_of_rows() const { return slice<std::uint32_t>(memory(samples_), 0, shape_.rows); }

  /// The array called `name`. Errors: std::invalid_argument naming what there is.
  ConstVector<std::int32_t> integers(std::string_view name) const;
  ConstVector<float> floats(std::string_view name) const;
  ConstVector<std::uint8_t> bytes(std::string_view name) const;
  /// Whether an array of any type is called `name`.
  bool has(std::string_view name) const;
  /// The groups of an array that was given to `set_indices`.
  IndexGroups groups(std::string_view name) const;

 private:
  /// An array on the device, and the host memory that it is copied from.
  template <class T>
  struct Turn {
    PinnedVector<T> staged;
    Vector<T> memory;
  };
  /// Batches take turns in it; on a host, where nothing runs later, there is one.
  template <class T>
  struct Upload {
    Turn<T> turns[runs_on_host ? 1 : 2];
    std::size_t batch = 0;  ///< that filled it last
  };

  template <class T>
  struct Field {
    Upload<T> values;
    std::size_t size = 0;
    bool is_set = false;  ///< since the batch began
  };

  struct Groups {
    Upload<std::int32_t> values;
    Upload<std::uint32_t> starts, rows;
    std::size_t count = 0, size = 0;
    bool is_set = false;
    std::vector<std::int32_t> host_values;
    std::vector<std::uint32_t> host_starts, host_rows;
  };

  template <class T>
  const Vector<T>& memory(const Upload<T>& array) const {
    return array.turns[batches_ % std::size(array.turns)].memory;
  }
  std::size_t room_for(std::size_t size) const;
  template <class T>
  void upload(const std::string& label, std::span<const T> values, Upload<T>& to, std::size_t capacity = 0);
  template <class T>
  using Fields = std::map<std::string, Field<T>, std::less<>>;
  template <class T>
  void set_field(Fields<T>& fields, std::string_view name, std::span<const T> values);
  template <class T>
  ConstVector<T> find_field(const Fields<T>& fields, std::string_view name, std::string_view kind) const;

  BatchShape largest_, shape_;
  ExecutionSpace queue_ = make_queue();
  LaunchMark uploaded_;
  std::size_t batches_ = 0;  ///< begun
  LaunchMark marks_[2];      ///< after all that worked with a batch, for each turn
  std::vector<std::size_t> host_starts_;
  std::vector<std::uint32_t> host_positions_, host_samples_;
  Upload<std::size_t> starts_;
  Upload<std::uint32_t> ids_, positions_, samples_;
  Fields<std::int32_t> integers_;
  Fields<float> floats_;
  Fields<std::uint8_t> bytes_;
  std::map<std::string, Groups, std::less<>> groups_;
};

}  // namespace mylos
