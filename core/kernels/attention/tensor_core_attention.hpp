#pragma once

#include "core/kernels/attention/attention.hpp"

#include <string>

/// Attention's passes on tensor cores: the same as in core/kernels/attention/attention.hpp, for 16-bit types, heads of
/// 32, 64 and 128 elements, and 16-byte aligned arrays.
namespace mylos::attention {

/// The architecture whose instructions the passes of this build use: NVIDIA's 8.0 or AMD's gfx90a for bfloat16 and
/// half, 7.0 for half; none if the build has no such passes. The functions below fail for other types.
extern const GpuArchitecture tensor_core_architecture;

/// Returns the reason why passes with the instructions of `architecture` (none: no passes) cannot run with this element
/// type; empty if they can.
std::string tensor_core_obstacle(const GpuArchitecture& architecture, Precision precision);

template <class T>
void tensor_core_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                         const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                         const Matrix<float>& log_sum_exp);

template <class T>
void tensor_core_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                          const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                          const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                          const Matrix<float>& row_sums);

/// Instantiates both in a file that defines them.
#define MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(T)                                                            \
  template void tensor_core_forward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,  \
                                       const DropoutKey&, const ConstMatrix<T>&, const Matrix<T>&,            \
                                       const Matrix<float>&);                                                 \
  template void tensor_core_backward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, \
                                        const DropoutKey&, const ConstMatrix<T>&, const ConstMatrix<T>&,      \
                                        const ConstMatrix<float>&, const ConstMatrix<T>&, const Matrix<T>&,   \
                                        const Matrix<float>&);

}  // namespace mylos::attention
