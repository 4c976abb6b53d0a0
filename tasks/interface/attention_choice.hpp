#pragma once

#include "core/base/notice.hpp"
#include "core/kernels/attention.hpp"
#include "tasks/interface/run_config.hpp"

namespace mylos::tasks {

/// The requirements of a run on attention.
struct AttentionUse {
  Precision precision = Precision::float32;
  std::size_t head_size = 0;
  double dropout = 0.0;  ///< probability in training; 0 if the run does not train
};

/// Returns the attention kernel of a run: the one of --attention, otherwise the fastest on the device in use, which a
/// notice names if it is not portable. Kokkos must be initialized. Errors: std::runtime_error if the build, the device
/// or the model's heads do not support the kernel, or the kernel has no dropout.
AttentionKernel attention_kernel(const TaskConfig& configured, const AttentionUse& use, const Notice& notice);

/// Returns the kernel that a run on the planned GPU (TaskConfig::planned_capability) would choose, in a build for it.
AttentionKernel planned_attention(const TaskConfig& configured, Precision precision, std::size_t head_size);

}  // namespace mylos::tasks
