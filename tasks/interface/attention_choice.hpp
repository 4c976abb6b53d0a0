#pragma once

#include "core/base/notice.hpp"
#include "core/kernels/attention.hpp"
#include "tasks/interface/run_config.hpp"

namespace mylos::tasks {

/// Returns the attention kernel of a run: the one of --attention, otherwise the fastest on the device in use, which a
/// notice names if it is not portable. Kokkos must be initialized. Errors: std::runtime_error if the build or the
/// model's heads do not support the kernel.
AttentionKernel attention_kernel(const TaskConfig& configured, Precision precision, std::size_t head_size,
                                 const Notice& notice);

}  // namespace mylos::tasks
