#include "core/kernels/attention/tensor_core_attention.hpp"
#include "core/kernels/cuda/cuda_block.hpp"
#include "core/kernels/gpu/attention_launch.hpp"

/// Attention on the tensor cores of devices of compute capability 7.0, which multiply half.
namespace mylos::attention {

using matrix::VoltaBlock;

const GpuArchitecture tensor_core_architecture = nvidia_gpu(70);

namespace {

template <class T>
inline constexpr bool is_multiplied = precision_of<T> == Precision::float16;

[[noreturn]] void fail_for_type() { fail("attention: tensor cores of compute capability 7.0 take half only"); }

}  // namespace

template <class T>
void tensor_core_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                         const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                         const Matrix<float>& log_sum_exp) {
  if constexpr (is_multiplied<T>) {
    launch_forward_pass<VoltaBlock>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
  } else {
    fail_for_type();
  }
}

template <class T>
void tensor_core_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                          const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                          const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                          const Matrix<float>& row_sums) {
  if constexpr (is_multiplied<T>) {
    launch_backward_passes<VoltaBlock>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums);
  } else {
    fail_for_type();
  }
}

#define MYLOS_INSTANTIATE(T)                                                                                  \
  template void tensor_core_forward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,  \
                                       const DropoutKey&, const ConstMatrix<T>&, const Matrix<T>&,            \
                                       const Matrix<float>&);                                                 \
  template void tensor_core_backward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, \
                                        const DropoutKey&, const ConstMatrix<T>&, const ConstMatrix<T>&,      \
                                        const ConstMatrix<float>&, const ConstMatrix<T>&, const Matrix<T>&,   \
                                        const Matrix<float>&);
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::attention
