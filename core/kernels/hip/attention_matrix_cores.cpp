#include "core/kernels/gpu/attention_launch.hpp"
#include "core/kernels/hip/hip_block.hpp"

/// Attention on the matrix cores of AMD GPUs of architectures gfx90a and gfx942.
namespace mylos::attention {

const GpuArchitecture tensor_core_architecture = amd_gpu(0x90a);

template <class T>
struct BlockOf {
  using type = matrix::HipBlock;
};

MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(bfloat16)
MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(half)

}  // namespace mylos::attention
