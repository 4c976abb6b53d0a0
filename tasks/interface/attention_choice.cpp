#include "tasks/interface/attention_choice.hpp"

#include "core/base/error.hpp"
#include "core/device.hpp"

#include <fmt/format.h>

#include <vector>

namespace mylos::tasks {
namespace {

/// Fails if the run cannot use the kernel that it asks for: because of `obstacle` unless that is empty, or dropout.
void check_chosen(AttentionKernel kernel, const AttentionUse& use, const std::string& obstacle) {
  if (!obstacle.empty()) {
    fail(fmt::format("--attention {}: {}; use --attention {}", to_string(kernel), obstacle,
                     to_string(AttentionKernel::portable)));
  }
  if (use.dropout > 0.0 && !has_dropout(kernel)) {
    fail(fmt::format(
        "--attention {}: it has no dropout, and that of this run is {:g}; use --dropout 0, or leave --attention out",
        to_string(kernel), use.dropout));
  }
}

}  // namespace

AttentionUse attention_use(const AttentionShape& shape, const train::TrainConfig& engine, double dropout) {
  return {.shape = shape,
          .precision = engine.precision,
          .dropout = dropout,
          .deterministic = engine.parallel.deterministic};
}

AttentionKernel attention_kernel(const TaskConfig& configured, const AttentionUse& use) {
  if (!configured.attention) return attention_candidates(use, architecture_in_use()).front();
  if (*configured.attention != AttentionKernel::portable) {
    check_chosen(*configured.attention, use,
                 attention_obstacle(*configured.attention, use.precision, use.shape.head_size, architecture_in_use()));
  }
  return *configured.attention;
}

std::optional<train::AttentionRequest> attention_request(const RunConfig& run, const Task& task, std::size_t ranks) {
  const std::optional<AttentionUse> use = task.attention();
  if (!use) return std::nullopt;
  const bool trains = !run.task.train.empty();
  return train::AttentionRequest{
      .candidates =
          run.task.attention ? std::vector{*run.task.attention} : attention_candidates(*use, architecture_in_use()),
      .asked = run.task.attention.has_value(),
      .prove = [use = *use](AttentionKernel kernel) { return prove_attention(ExecutionSpace(), kernel, use); },
      .recorded = run.task.recorded_attention,
      .deterministic = use->deterministic || !trains,  // not timed
      .timed =
          [use, ranks, &run, &task] {
            return TimedAttention{use->shape, use->precision, train::first_lengths(task, run.engine, ranks)};
          },
      .cache = run.task.attention_cache};
}

std::string attention_line(const train::AttentionSelection& selection) {
  if (selection.kernel == AttentionKernel::portable) return {};
  std::string times;
  for (const auto& [kernel, seconds] : selection.seconds) {
    times += fmt::format("{} {} {:.3g} ms", times.empty() ? " (forward and backward pass of a layer:" : ",",
                         to_string(kernel), 1e3 * seconds);
  }
  return fmt::format("attention: {}{}; --attention selects another", to_string(selection.kernel),
                     times.empty() ? "" : times + ")");
}

train::AttentionSelection choose_attention(parallel::Communicator& ranks, const RunConfig& run, Task& task,
                                           const Notice& notice) {
  const std::optional<train::AttentionRequest> request = attention_request(run, task, ranks.size());
  if (!request) return {};
  train::AttentionSelection selection = train::select_attention(ranks, *request, notice);
  if (selection.kernel != task.attention()->shape.kernel) task.set_attention(selection.kernel);
  if (const std::string line = attention_line(selection); !line.empty() && !request->asked) notice(line);
  return selection;
}

AttentionKernel planned_attention(const TaskConfig& configured, const AttentionUse& use) {
  const GpuArchitecture& device = configured.planned_device;
  if (configured.attention) {
    check_chosen(*configured.attention, use,
                 planned_attention_obstacle(*configured.attention, use.precision, use.shape.head_size, device));
    return *configured.attention;
  }
  // Kernels with more memory come later.
  return fast_attention(planned_attention_candidates(use, device)).back();
}

}  // namespace mylos::tasks
