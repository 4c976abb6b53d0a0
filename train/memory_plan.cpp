#include "train/memory_plan.hpp"

#include "core/error.hpp"
#include "train/memory.hpp"
#include "train/run_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace mylos::train {
namespace {

double gibibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1u << 30); }

std::size_t activation_bytes(const Task& task, const BatchShape& largest, nn::Recompute recompute) {
  Arena training, evaluation;
  task.model().plan(training, largest, ParameterStore::Purpose::training, recompute);
  const BatchShape evaluated = evaluation_shape(task);
  if (evaluated.samples > 0) {
    task.model().plan(evaluation, evaluated, ParameterStore::Purpose::inference, nn::Recompute::none);
  }
  return std::max(training.peak(), evaluation.peak());
}

/// The plan with a limit of the micro-batch, in a layout.
MemoryPlan plan_for(const Task& task, const TrainConfig& config, std::size_t steps, const MicroBatchLimit& limit,
                    const RankLayout& layout, bool on_host) {
  const std::size_t slots = config.optimizer.kind == OptimizerKind::adamw ? 2 : 1;
  const MicroBatchBounds bounds = bound_micro_batches(task, steps, limit, layout.sharing);
  MemoryPlan plan;
  plan.limit = limit;
  plan.largest = bounds.largest;
  plan.layout = layout;
  plan.mode = {.kind = layout.mode,
               .bfloat16_gradients = config.parallel.bfloat16_gradients,
               .tree_sums = layout.sharing.leaves > 0,
               .micro_batches = bounds.micro_batches};
  const parallel::ModeMemory held =
      parallel::mode_memory(plan.mode, layout.shards, task.model().table(), config.precision);
  plan.values = held.values;
  plan.gradients = held.gradients;
  plan.exchange =
      held.exchange + (on_host ? parallel::exchange_bytes(layout.sharing.ranks, config.parallel.bucket) : 0);
  plan.optimizer = held.slices * slots * sizeof(float);
  plan.activations = activation_bytes(task, plan.largest, config.recompute);
  plan.workspace = widened_bytes(largest_products(task, plan));
  // Rows are loaded in memory of the host, which a device build does not plan.
  for (const ParameterRow& row : task.model().table().rows()) {
    if (on_host) plan.loading = std::max(plan.loading, row.size * sizeof(float));
  }
  return plan;
}

/// The plan in a mode: where the micro-batch is not chosen, halved until it fits or has one sample.
MemoryPlan plan_mode(const Task& task, const TrainConfig& config, std::size_t steps, std::size_t available,
                     const RankLayout& layout, bool on_host) {
  const std::size_t largest = largest_global_batch(task, steps);
  const bool chosen =
      config.micro_batch > 0 || config.micro_tokens > 0 || config.accumulation > 0 || layout.sharing.leaves > 0;
  MicroBatchLimit limit{.samples = config.micro_batch > 0 ? std::min(config.micro_batch, largest) : largest,
                        .tokens = config.micro_tokens,
                        .parts = config.accumulation};
  MemoryPlan plan = plan_for(task, config, steps, limit, layout, on_host);
  if (!chosen) limit.samples = plan.limit.samples = plan.largest.samples;
  while (!chosen && plan.total() > available && limit.samples > 1) {
    limit.samples = (limit.samples + 1) / 2;
    plan = plan_for(task, config, steps, limit, layout, on_host);
  }
  return plan;
}

/// Settings that this run's model or samples cannot honour.
void check_settings(const Task& task, const TrainConfig& config, std::size_t steps) {
  if (!task.model().can_recompute(config.recompute)) {
    fail(fmt::format("--recompute {}: this model always keeps what its backward pass reads; use --recompute none",
                     nn::to_string(config.recompute)));
  }
  if (config.micro_tokens == 0) return;
  std::size_t longest = 0;
  for (std::size_t step = 0; step < std::min(steps, task.steps_per_epoch()); ++step) {
    for (const std::size_t sample : task.global_batch(step)) longest = std::max(longest, task.rows_of(sample));
  }
  if (longest <= config.micro_tokens) return;
  fail(fmt::format("--micro-tokens {}: the longest sequence that is trained on has {} tokens; use at least that many",
                   config.micro_tokens, longest));
}

std::string advice(const Task& task, const MemoryPlan& plan, const TrainConfig& config, const RankCounts& ranks) {
  std::string text;
  if (plan.layout.sharing.leaves > 0) {
    text = "use more --leaves";
  } else if (config.accumulation > 0 && plan.largest.samples > 1) {
    text = "use more --gradient-accumulation-steps";
  } else if (config.micro_tokens > 0 && plan.largest.samples > 1) {
    text = "use a smaller --micro-tokens";
  } else if (plan.largest.samples > 1) {
    text = "use a smaller --micro-batch";
  } else {
    text = "use a smaller --max-length or model";
  }
  if (ranks.ranks > 1 && plan.layout.mode != parallel::ModeKind::sharded) text += ", or --mode sharded";
  const bool may_recompute =
      config.recompute != nn::Recompute::layer && task.model().can_recompute(nn::Recompute::layer);
  return text + (may_recompute ? ", or --recompute layer" : "");
}

}  // namespace

void note_resident(MemoryPlan& plan) {
  release_unused_memory();
  plan.program = resident_memory();
  plan.before = peak_resident_memory();
}

std::vector<GemmProduct> largest_products(const Task& task, const MemoryPlan& plan) {
  std::vector<GemmProduct> products = task.model().products(plan.largest, ParameterStore::Purpose::training);
  const BatchShape evaluated = evaluation_shape(task);
  if (evaluated.samples == 0) return products;
  for (const GemmProduct& product : task.model().products(evaluated, ParameterStore::Purpose::inference)) {
    products.push_back(product);
  }
  return products;
}

MemoryPlan plan_memory(const Task& task, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankCounts& ranks) {
  using parallel::ModeKind;
  check_settings(task, config, steps);
  const ModeKind mode = config.parallel.mode.value_or(ModeKind::replicated);
  MemoryPlan plan = plan_mode(task, config, steps, available, lay_out(config, mode, ranks), ranks.on_host);
  if (plan.total() > available && !config.parallel.mode && ranks.ranks > 1) {
    plan = plan_mode(task, config, steps, available, lay_out(config, ModeKind::sharded, ranks), ranks.on_host);
  }
  if (plan.total() > available) {
    fail(
        fmt::format("memory: {:.2f} GiB are needed (values {:.2f}, gradients {:.2f}, optimizer {:.2f}, activations of "
                    "{} tokens {:.2f}), {:.2f} GiB are free; {}",
                    gibibytes(plan.total()), gibibytes(plan.values), gibibytes(plan.gradients + plan.exchange),
                    gibibytes(plan.optimizer), plan.largest.rows, gibibytes(plan.activations), gibibytes(available),
                    advice(task, plan, config, ranks)));
  }
  return plan;
}

}  // namespace mylos::train
