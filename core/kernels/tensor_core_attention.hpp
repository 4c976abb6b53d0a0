#pragma once

#include "core/kernels/attention.hpp"

/// Attention's passes on tensor cores: the same as in core/kernels/attention.hpp, for bfloat16 and half, heads of 32,
/// 64 and 128 elements, and 16-byte aligned arrays.
namespace mylos::attention {

/// True if this build includes the tensor-core passes; otherwise the functions below fail.
extern const bool has_tensor_cores;

template <class T>
void tensor_core_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                         const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                         const Matrix<float>& log_sum_exp);

template <class T>
void tensor_core_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                          const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                          const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                          const Matrix<float>& row_sums);

}  // namespace mylos::attention
