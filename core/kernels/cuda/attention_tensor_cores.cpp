#include "core/kernels/cuda/cuda_block.hpp"
#include "core/kernels/gpu/attention_launch.hpp"

/// Attention on the tensor cores of devices of compute capability 8.0 or later.
namespace mylos::attention {

const GpuArchitecture tensor_core_architecture = nvidia_gpu(80);

template <class T>
struct BlockOf {
  using type = matrix::AmpereBlock;
};

MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(bfloat16)
MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(half)

}  // namespace mylos::attention
