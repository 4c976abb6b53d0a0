#pragma once

#include "core/parameter_store.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// State tensors (BatchNorm's running statistics) from what the samples of a step observed. They depend neither on how
/// a step is cut nor on ranks: what samples observed is added in the order of the global batch.
namespace mylos::train {

class ObservedState {
 public:
  /// `store` and `ranks` outlive it.
  ObservedState(const ParameterStore& store, parallel::Communicator& ranks);

  /// A step begins in which this rank computes so many samples.
  void begin_step(std::size_t samples);
  /// (count, observed_size()) where a pass writes what the samples from the `first` of this rank on observe, in the
  /// order in which it computes them. Behind the last of them there is room for one that does not count. Empty where
  /// the table has no state.
  Matrix<float> rows(std::size_t first, std::size_t count) const;
  /// Updates the state tensors as their rules say. `weights[i]` is the part of sample i in the mean; this rank computed
  /// `places` of the global batch, in this order. Collective; afterwards all ranks have the same bits.
  void update(const ExecutionSpace& space, std::span<const double> weights, std::span<const std::size_t> positions);

  /// Bytes that it takes on a rank that computes `samples` of a global batch of `batch`.
  static std::size_t bytes(const ParameterTable& table, std::size_t samples, std::size_t batch);

 private:
  Matrix<float> exchanged(const ExecutionSpace& space, std::size_t unit, const ConstVector<std::size_t>& positions,
                          std::size_t batch);

  const ParameterStore& store_;
  parallel::Communicator& ranks_;
  std::size_t width_;
  Matrix<float> observed_;               ///< (samples of this rank + 1, width)
  Vector<float> unit_rows_;              ///< (global batch, state of the largest unit)
  Vector<std::size_t> positions_;        ///< memory for those of this rank's samples,
  Vector<float> weights_;                ///< and for the weights of all samples
  std::vector<Vector<float>> momentum_;  ///< of each unit's elements; below zero: they count
};

}  // namespace mylos::train
