#pragma once

#include "core/arena.hpp"
#include "core/device.hpp"

/// BatchNorm with ReLU (Ioffe, Szegedy 2015): y = max(0, gamma (x - mean) / sqrt(variance + epsilon) + beta) for each
/// channel. In training, statistics are computed over a group of images, which is one sample of the task. The data
/// define the groups, so they do not depend on the micro-batch or the number of ranks. Deterministic.
namespace mylos::small_models {

/// Group s consists of rows [starts[s] / divisor, starts[s + 1] / divisor). Layers after pooling have fewer rows.
struct NormGroups {
  ConstVector<std::size_t> starts;            ///< (S+1)
  ConstVector<std::uint32_t> groups_of_rows;  ///< for the undivided rows
  std::size_t divisor = 1;

  KOKKOS_INLINE_FUNCTION std::size_t begin(std::size_t group) const { return starts(group) / divisor; }
  KOKKOS_INLINE_FUNCTION std::size_t of_row(std::size_t row) const { return groups_of_rows(row * divisor); }
};

struct NormStatistics {
  Matrix<float> mean;      ///< (S, C), or (1, C) if all rows use the running statistics
  Matrix<float> variance;  ///< same shape, biased
};

struct NormParameters {
  ConstVector<float> gamma, beta;  ///< (C)
  float epsilon = 1e-5f;
};

/// Computes mean and variance of x (T, C) over each group.
void group_statistics(const ExecutionSpace& space, const NormGroups& groups, const ConstMatrix<float>& x,
                      const NormStatistics& statistics);

/// Writes each group's means and its unbiased variances, as PyTorch stores them, to `observed`, starting at these
/// columns.
void observe_statistics(const ExecutionSpace& space, const NormGroups& groups, const NormStatistics& statistics,
                        const Matrix<float>& observed, std::size_t mean_column, std::size_t variance_column);

/// Computes y (T, C) from x (T, C).
void normalize_relu(const ExecutionSpace& space, const NormGroups& groups, const NormStatistics& statistics,
                    const NormParameters& parameters, const ConstMatrix<float>& x, const Matrix<float>& y);

/// Computes dx (T, C) and adds to dgamma, dbeta (C), from dy and y (T, C), with group statistics. `sums` is workspace
/// of S rows per matrix.
void normalize_relu_backward(const ExecutionSpace& space, const NormGroups& groups, const NormStatistics& statistics,
                             const NormParameters& parameters, const ConstMatrix<float>& x, const ConstMatrix<float>& y,
                             const ConstMatrix<float>& dy, const Matrix<float>& dx, const Vector<float>& dgamma,
                             const Vector<float>& dbeta, const NormStatistics& sums);

NormStatistics take_statistics(Arena& arena, std::size_t groups, std::size_t channels);

}  // namespace mylos::small_models
