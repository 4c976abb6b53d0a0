#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// RMSNorm over each head of queries and keys (Dehghani et al. 2023), in place. Rows have A query heads and then
/// KV key heads of D elements each; what follows is not changed. Sums are float. Deterministic: column sums run over
/// fixed blocks of rows.
namespace mylos {

template <class T>
struct HeadNorms {
  std::size_t heads = 0;            ///< A
  std::size_t key_value_heads = 0;  ///< KV
  ConstVector<T> query, key;        ///< weights (D)
  float epsilon = 1e-6f;

  KOKKOS_FORCEINLINE_FUNCTION std::size_t size() const { return query.size(); }
  KOKKOS_FORCEINLINE_FUNCTION std::size_t all() const { return heads + key_value_heads; }
};

/// Normalises the heads of x (T, columns), after copying them to `saved` (T, (A + KV) D), which the backward pass
/// needs. Errors: std::invalid_argument with the sizes if they do not fit together.
template <class T>
void head_norms(const ExecutionSpace& space, const HeadNorms<T>& norms, const Matrix<T>& x, const Matrix<T>& saved);

/// Replaces the gradient dx (T, columns) of the normalised heads by that of the saved ones, and adds to the gradients
/// (D) of the weights. The workspace needs column_sum_workspace floats for D columns.
template <class T>
void head_norms_backward(const ExecutionSpace& space, const HeadNorms<T>& norms, const ConstMatrix<T>& saved,
                         const Matrix<T>& dx, const Vector<float>& dquery, const Vector<float>& dkey,
                         const Vector<float>& workspace);

}  // namespace mylos
