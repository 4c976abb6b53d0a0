#include "core/kernels/cuda/cuda_block.hpp"
#include "core/kernels/gpu/attention_launch.hpp"

/// Attention on the tensor cores of devices of compute capability 7.0, which multiply half.
namespace mylos::attention {

const GpuArchitecture tensor_core_architecture = nvidia_gpu(70);

template <class T>
struct BlockOf {
  using type = std::conditional_t<precision_of<T> == Precision::float16, matrix::VoltaBlock, void>;
};

MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(bfloat16)
MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(half)

}  // namespace mylos::attention
