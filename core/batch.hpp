#pragma once

#include "core/device.hpp"

#include <cstdint>
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
/// a device are queued on ExecutionSpace(), on which whatever reads a batch is launched; the host waits for none of
/// them, so that it fills one batch while the device computes with the one before.
class Batch {
 public:
  /// Begins a new batch without arrays: sample i has lengths[i] rows and is element sample_ids[i] of the global batch.
  void reset(std::span<const std::size_t> lengths, std::span<const std::uint32_t> sample_ids);
  /// Copies `values` to the device under `name`; replaces what was there.
  void set(std::string_view name, std::span<const std::int32_t> values);
  void set(std::string_view name, std::span<const float> values);
  /// As `set` for indices into a table, and groups them by value.
  void set_indices(std::string_view name, std::span<const std::int32_t> values);

  const BatchShape& shape() const { return shape_; }
  /// (S+1) row where each sample begins; the last is T.
  ConstVector<std::size_t> sample_starts() const { return slice<std::size_t>(starts_.memory, 0, shape_.samples + 1); }
  /// The same on the host.
  std::span<const std::size_t> host_sample_starts() const { return host_starts_; }
  /// (S) place of each sample in the global batch: what random numbers are drawn by.
  ConstVector<std::uint32_t> sample_ids() const { return slice<std::uint32_t>(ids_.memory, 0, shape_.samples); }
  /// (T) row within its sample, and the sample of each row.
  ConstVector<std::uint32_t> positions() const { return slice<std::uint32_t>(positions_.memory, 0, shape_.rows); }
  ConstVector<std::uint32_t> samples_of_rows() const { return slice<std::uint32_t>(samples_.memory, 0, shape_.rows); }

  /// The array called `name`. Errors: std::invalid_argument naming what there is.
  ConstVector<std::int32_t> integers(std::string_view name) const;
  ConstVector<float> floats(std::string_view name) const;
  /// The groups of an array that was given to `set_indices`.
  IndexGroups groups(std::string_view name) const;

 private:
  /// An array on the device, and the host memory that it is copied from: batches take turns in it.
  template <class T>
  struct Upload {
    PinnedVector<T> staged[2];
    Vector<T> memory;       ///< goes first, which waits for the device: no copy is then under way
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
  void upload(const std::string& label, std::span<const T> values, Upload<T>& to, std::size_t capacity = 0) const;

  BatchShape shape_;
  std::size_t batches_ = 0;  ///< begun
  LaunchMark marks_[2];      ///< after all that worked with a batch, for each turn
  std::vector<std::size_t> host_starts_;
  std::vector<std::uint32_t> host_positions_, host_samples_;
  Upload<std::size_t> starts_;
  Upload<std::uint32_t> ids_, positions_, samples_;
  std::map<std::string, Field<std::int32_t>, std::less<>> integers_;
  std::map<std::string, Field<float>, std::less<>> floats_;
  std::map<std::string, Groups, std::less<>> groups_;
};

}  // namespace mylos
