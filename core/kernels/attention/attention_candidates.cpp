#include "core/kernels/attention/attention_candidates.hpp"

#include "core/kernels/attention/cudnn_attention.hpp"
#include "core/kernels/attention/tensor_core_attention.hpp"

#include <functional>
#include <vector>

namespace mylos {
namespace {

bool meets_use(AttentionKernel kernel, const AttentionUse& use) {
  return (use.dropout == 0.0 || has_dropout(kernel)) && (!use.deterministic || is_deterministic(kernel));
}

/// Returns the kernels that meet the requirements and that `can_run` accepts, and the portable one.
std::vector<AttentionKernel> candidates_of(const AttentionUse& use,
                                           const std::function<bool(AttentionKernel)>& can_run) {
  std::vector<AttentionKernel> candidates;
  for (const AttentionKernel kernel : {AttentionKernel::tensor_cores, AttentionKernel::cudnn}) {
    if (meets_use(kernel, use) && can_run(kernel)) candidates.push_back(kernel);
  }
  candidates.push_back(AttentionKernel::portable);
  return candidates;
}

}  // namespace

std::vector<AttentionKernel> attention_candidates(const AttentionUse& use, const GpuArchitecture& device) {
  return candidates_of(use, [&](AttentionKernel kernel) {
    // A build for 7.0 runs on later GPUs, which only emulate its instructions. gfx942 has those of gfx90a.
    const GpuArchitecture instructions = device.is_amd() ? amd_gpu(0x90a) : nvidia_gpu(device.is_nvidia(80) ? 80 : 70);
    if (kernel == AttentionKernel::tensor_cores && attention::tensor_core_architecture != instructions) return false;
    return attention_obstacle(kernel, use.precision, use.shape.head_size, device).empty();
  });
}

std::vector<AttentionKernel> planned_attention_candidates(const AttentionUse& use, const GpuArchitecture& device) {
  return candidates_of(use, [&](AttentionKernel kernel) {
    return planned_attention_obstacle(kernel, use.precision, use.shape.head_size, device).empty();
  });
}

std::vector<AttentionKernel> fast_attention(std::vector<AttentionKernel> candidates) {
  if (candidates.size() > 1) std::erase(candidates, AttentionKernel::portable);
  return candidates;
}

}  // namespace mylos
