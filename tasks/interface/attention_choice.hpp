#pragma once

#include "core/kernels/attention.hpp"
#include "tasks/interface/run_config.hpp"

namespace mylos::tasks {

/// Returns the attention kernel of a run: the one of --attention, otherwise the fastest on the device in use, or
/// portable if Kokkos is not initialized. Errors: std::runtime_error if the build or the model's heads do not support
/// it.
AttentionKernel attention_kernel(const TaskConfig& configured, Precision precision, std::size_t head_size);

}  // namespace mylos::tasks
