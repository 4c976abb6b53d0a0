#pragma once

#include "core/base/notice.hpp"
#include "core/kernels/attention/attention_candidates.hpp"
#include "tasks/interface/run_config.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/selection/attention_selection.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// The attention kernel of a run: the one of --attention, otherwise one of the candidates of the device in use. Either
/// is proven on that device.
namespace mylos::tasks {

/// Returns the requirements of a run on a model's attention. `dropout` is its probability in training.
AttentionUse attention_use(const AttentionShape& shape, const train::TrainConfig& engine, double dropout = 0.0);

/// Returns the kernel that a task's model is made with: the one of --attention, otherwise the first candidate. The
/// program proves it before it computes, and may take another one (attention_request). Kokkos must be initialized.
/// Errors: std::runtime_error if the build, the device or the model's heads do not support the kernel, or the kernel
/// has no dropout.
AttentionKernel attention_kernel(const TaskConfig& configured, const AttentionUse& use);

/// Returns what the kernel of a run on so many ranks is selected from (train::select_attention), for calling
/// Task::set_attention; nullopt if the model has no attention. A run that does not train takes the first candidate
/// that is proven. `run` and `task` must outlive it.
std::optional<train::AttentionRequest> attention_request(const RunConfig& run, const Task& task, std::size_t ranks);

/// Returns the line that names a kernel that no option asked for, with the times that it was selected by; empty for the
/// portable one.
std::string attention_line(const train::AttentionSelection& selection);

/// Returns the kernel to plan with on the planned GPU (TaskConfig::planned_device): the one of --attention,
/// otherwise, among the candidates of a run there, the one that needs the most memory, because their times are not
/// known. Errors: std::runtime_error if no build can run the requested kernel there, or it has no dropout.
AttentionKernel planned_attention(const TaskConfig& configured, const AttentionUse& use);

/// Proves and chooses the attention kernel of a run, the same on all ranks (attention_request), and makes the
/// model of `task` with it. The task of a run that trains must have its data. `notice` gets a line that names the
/// kernel, unless it is portable or asked for. Returns the default if the model has no attention. Collective. Errors:
/// those of train::select_attention.
train::AttentionSelection choose_attention(parallel::Communicator& ranks, const RunConfig& run, Task& task,
                                           const Notice& notice);

}  // namespace mylos::tasks
