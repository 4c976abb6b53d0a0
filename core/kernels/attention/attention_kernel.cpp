#include "core/kernels/attention/attention_kernel.hpp"

namespace mylos {

std::string_view to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::tensor_cores:
      return "tensor-cores";
    case AttentionKernel::cudnn:
      return "cudnn";
    case AttentionKernel::portable:
      break;
  }
  return "portable";
}

std::optional<AttentionKernel> find_attention_kernel(std::string_view name) {
  for (const AttentionKernel kernel : attention_kernels) {
    if (to_string(kernel) == name) return kernel;
  }
  return std::nullopt;
}

}  // namespace mylos
