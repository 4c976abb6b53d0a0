#pragma once

#include "core/kernels/updates/optimizer.hpp"
#include "core/parameter_store.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

/// Updates state tensors (BatchNorm's running statistics) from the observations of a step's samples. Observations are
/// summed in the order of the global batch, so the result depends neither on micro-batches nor on the number of ranks.
namespace mylos::train {

class ObservedState {
 public:
  /// `store` and `ranks` must outlive this object.
  ObservedState(const ParameterStore& store, parallel::Communicator& ranks);

  /// Begins a step in which this rank computes `samples` samples.
  void begin_step(std::size_t samples);
  /// Returns the matrix (count, observed_size()) that a pass writes observations into, for the samples of this rank
  /// from `first` on in the order of computation. There is room for one dummy sample after the last. Empty if the table
  /// has no state.
  Matrix<float> rows(std::size_t first, std::size_t count) const;
  /// Updates the state tensors by their rules, unless `control` (1) skips the update. `weights[i]` is the weight of
  /// sample i in the mean; this rank computed the samples at `positions` of the global batch, in this order. Does not
  /// wait for a device, but the host must have waited for the third-last update, whose host memory is used again.
  /// Collective; afterwards all ranks hold the same bits.
  void update(const ExecutionSpace& space, std::span<const double> weights, std::span<const std::size_t> positions,
              const ConstVector<UpdateControl>& control);

  /// Returns the bytes used on a rank that computes `samples` samples of a global batch of `batch`.
  static std::size_t bytes(const ParameterTable& table, std::size_t samples, std::size_t batch);

 private:
  /// Arrays of host memory that updates use in turn. When a step is launched, the host has waited for the results of
  /// the second-last step, and so for the update before these results, the third-last one.
  static constexpr std::size_t slots = 3;

  /// Host values that are copied to the device for each update.
  template <class T>
  struct Upload {
    PinnedVector<T> staged[slots];
    Vector<T> values;
  };

  template <class T>
  Vector<T> upload(const ExecutionSpace& space, const std::string& label, std::span<const T> values,
                   Upload<T>& to) const;
  Matrix<float> exchanged(const ExecutionSpace& space, std::size_t unit, const ConstVector<std::size_t>& positions,
                          std::size_t batch);

  const ParameterStore& store_;
  parallel::Communicator& ranks_;
  std::size_t width_;
  Matrix<float> observed_;         ///< (samples of this rank + 1, width)
  Vector<float> unit_rows_;        ///< (global batch, state of the largest unit)
  Upload<std::size_t> positions_;  ///< positions of this rank's samples
  Upload<float> weights_;          ///< weights of all samples
  std::size_t updates_ = 0;
  std::vector<Vector<float>> momentum_;  ///< momentum of each unit's elements; negative for elements that count updates
};

}  // namespace mylos::train
