#pragma once

#include "core/base/error.hpp"
#include "core/kernels/attention/attention_dropout.hpp"
#include "core/kernels/gpu/matrix_tiles.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

/// The arguments of attention's passes on tensor cores, and their making from arrays on the host.
namespace mylos::attention {

using matrix::Octet;

/// The arguments common to all passes; arrays as in core/kernels/attention/attention.hpp.
template <class T>
struct PackedHeads {
  int heads, key_value_heads;
  AttentionMask mask;
  float scale;
  DropoutKey dropout;
  const std::size_t* starts;
  const std::uint32_t* sample_ids;
  std::size_t rows;  ///< T
  const T* qkv;
  std::size_t longest;  ///< rows of the longest sequence
  KeptPairs kept;       ///< if there is dropout

  MYLOS_BLOCK_FUNCTION std::size_t columns(int size) const {
    return static_cast<std::size_t>((heads + 2 * key_value_heads) * size);
  }
};

template <class T>
struct ForwardArguments : PackedHeads<T> {
  T* out;
  float* log_sum_exp;  ///< (A, T)
};

template <class T>
struct BackwardArguments : PackedHeads<T> {
  const T *out, *dout;
  const float* log_sum_exp;  ///< (A, T)
  T* dqkv;
  float* row_sums;  ///< (A, T)
};

/// Errors: std::invalid_argument if a matrix is not 16-byte aligned, or has gaps between its rows.
template <class T>
void check_octets(std::initializer_list<ConstMatrix<T>> matrices) {
  for (const ConstMatrix<T>& matrix : matrices) {
    require(reinterpret_cast<std::uintptr_t>(matrix.data()) % sizeof(Octet) == 0,
            "attention on tensor cores: an array does not begin at a multiple of 16 bytes");
    require(matrix.stride(0) == matrix.extent(1), "attention on tensor cores: an array has gaps between its rows");
  }
}

template <class T>
PackedHeads<T> packed_heads(const AttentionShape& shape, const PackedSequences& sequences, const DropoutKey& dropout,
                            const KeptPairs& kept, const ConstMatrix<T>& qkv) {
  return {.heads = static_cast<int>(shape.heads),
          .key_value_heads = static_cast<int>(shape.key_value_heads),
          .mask = shape.mask(),
          .scale = shape.scale,
          .dropout = dropout,
          .starts = sequences.starts.data(),
          .sample_ids = sequences.sample_ids.data(),
          .rows = qkv.extent(0),
          .qkv = qkv.data(),
          .longest = sequences.longest,
          .kept = kept};
}

template <class T>
ForwardArguments<T> forward_arguments(const AttentionShape& shape, const PackedSequences& sequences,
                                      const DropoutKey& dropout, const KeptPairs& kept, const ConstMatrix<T>& qkv,
                                      const Matrix<T>& out, const Matrix<float>& log_sum_exp) {
  check_octets<T>({qkv, out});
  return {packed_heads(shape, sequences, dropout, kept, qkv), out.data(), log_sum_exp.data()};
}

template <class T>
BackwardArguments<T> backward_arguments(const AttentionShape& shape, const PackedSequences& sequences,
                                        const DropoutKey& dropout, const KeptPairs& kept, const ConstMatrix<T>& qkv,
                                        const ConstMatrix<T>& out, const ConstMatrix<float>& log_sum_exp,
                                        const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                                        const Matrix<float>& row_sums) {
  check_octets<T>({qkv, out, dout, dqkv});
  return {packed_heads(shape, sequences, dropout, kept, qkv),
          out.data(),
          dout.data(),
          log_sum_exp.data(),
          dqkv.data(),
          row_sums.data()};
}

}  // namespace mylos::attention
