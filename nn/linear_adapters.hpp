#pragma once

#include "core/kernels/low_rank.hpp"
#include "nn/model.hpp"

#include <map>

/// The adapters of linear layers in a pass: y += scale B A dropout(x) for each layer that has one.
namespace mylos::nn {

/// The adapters of layers that are stacked, as tensors in the parameter table. The matrices A are one after the other.
struct LinearAdapters {
  LowRankBlocks blocks = {};
  std::size_t down = 0;                                      ///< the first A
  Kokkos::Array<std::size_t, most_low_rank_blocks> up = {};  ///< B of each
  std::size_t in = 0, out = 0, rank = 0;                     ///< K, N, and R, the sum of the ranks
  float dropout = 0.0f;
  std::uint32_t site = 0;  ///< of dropout
};

/// Returns the adapters of `stacked` layers whose first weight is `weight`; their rank is 0 if they have none.
LinearAdapters find_adapters(const ParameterTable& table, std::size_t weight, std::size_t stacked);

/// Returns those of all layers that have adapters, in the order of the table.
std::vector<LinearAdapters> all_adapters(const ParameterTable& table);

/// The arrays of adapters in a pass. A training pass keeps x A^T (T, R) of each; the others are shared.
class AdapterArrays {
 public:
  /// Takes the arrays for `all` adapters from the arena.
  AdapterArrays(Arena& arena, std::span<const LinearAdapters> all, Precision precision, std::size_t rows,
                ParameterStore::Purpose purpose);
  /// Draws dropout for the rows of this batch.
  void set_batch(const Batch& batch) { rows_ = dropout_rows(batch); }

  // The functions below are for layers with adapters. Products are those of pass.gemm.

  /// y (T, N) = scale B A dropout(x) + beta y.
  template <class T>
  void forward(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& x, float beta,
               const Matrix<T>& y);
  /// Adds the gradients of A for x (T, K), and those of B for dy (T, N) unless input_gradient has.
  template <class T>
  void gradients(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& x, const ConstMatrix<T>& dy);
  /// dx (T, K) = the gradient that passes through A and B + beta dx; adds the gradients of B unless `gradients` has.
  template <class T>
  void input_gradient(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& dy, float beta,
                      const Matrix<T>& dx);

 private:
  template <class T>
  Matrix<T> part(const Vector<std::byte>& memory, std::size_t rows, std::size_t columns) const {
    return Matrix<T>(reinterpret_cast<T*>(memory.data()), rows, columns);
  }
  template <class T>
  Matrix<T> kept_rows(const LinearAdapters& adapters) const {
    return part<T>(kept_.at(adapters.down), count_, adapters.rank);
  }
  template <class T>
  ConstMatrix<T> placed(const Pass& pass, const LinearAdapters& adapters);
  template <class T>
  Matrix<T> row_gradients(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& dy);
  template <class T>
  ConstMatrix<T> dropped(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& x);

  std::size_t count_;                              ///< T
  std::map<std::size_t, Vector<std::byte>> kept_;  ///< x A^T by the first A; all the same memory in prediction
  Vector<std::byte> up_;                           ///< U of low_rank.hpp
  Vector<float> up_gradient_;                      ///< dU
  Vector<std::byte> row_gradients_;                ///< the gradient of x A^T
  Vector<std::byte> dropped_;                      ///< dropout(x), or a gradient before it
  DropoutRows rows_ = {};
  std::size_t current_ = no_adapters;  ///< the first A of the layers whose gradient is in row_gradients_
  static constexpr std::size_t no_adapters = static_cast<std::size_t>(-1);
};

/// Returns the products of adapters in a pass over T rows.
std::vector<GemmProduct> adapter_products(std::span<const LinearAdapters> all, std::size_t rows, Precision precision,
                                          ParameterStore::Purpose purpose);

}  // namespace mylos::nn
