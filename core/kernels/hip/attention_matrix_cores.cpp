#include "core/kernels/attention/tensor_core_attention.hpp"
#include "core/kernels/gpu/attention_launch.hpp"
#include "core/kernels/hip/hip_block.hpp"

/// Attention on the matrix cores of AMD GPUs of architectures gfx90a and gfx942.
namespace mylos::attention {

using matrix::HipBlock;

const GpuArchitecture tensor_core_architecture = amd_gpu(0x90a);

template <class T>
void tensor_core_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                         const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                         const Matrix<float>& log_sum_exp) {
  launch_forward_pass<HipBlock>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
}

template <class T>
void tensor_core_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                          const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                          const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                          const Matrix<float>& row_sums) {
  launch_backward_passes<HipBlock>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums);
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
