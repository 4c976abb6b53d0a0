#include "train/engine/memory/memory_plan.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/kernels/products/gemm_measure.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/engine/memory/memory_advice.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/selection/gemm_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mylos::train {
namespace {

double gibibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1u << 30); }

/// Plans the recorded layout. Returns nullopt if the user asks for another one or it does not fit.
std::optional<MemoryPlan> plan_recorded(const Workload& workload, TrainConfig config, std::size_t steps,
                                        std::size_t available, const RankCounts& ranks) {
  if (!config.recorded_layout || has_chosen_split(config)) return std::nullopt;
  const RecordedLayout& recorded = *config.recorded_layout;
  if (recorded.ranks != ranks.ranks || config.parallel.strategy.value_or(recorded.strategy) != recorded.strategy) {
    return std::nullopt;
  }
  config.micro_batch = recorded.micro_batch;
  const MemoryPlan plan =
      plan_layout(workload, config, steps, available, lay_out(config, recorded.strategy, ranks), ranks);
  return plan.total() <= available ? std::optional(plan) : std::nullopt;
}

/// Fails on settings that the run's model or samples do not support.
void check_settings(const Workload& workload, const TrainConfig& config, std::size_t steps) {
  if (!workload.model.can_recompute(config.recompute)) {
    throw SettingError("recompute", nn::to_string(config.recompute),
                       "this model cannot recompute activations; use " + setting("recompute", "none"));
  }
  if (config.micro_tokens == 0) return;
  const std::size_t longest = longest_sample(workload.samples, steps);
  if (longest <= config.micro_tokens) return;
  throw SettingError(
      "micro-tokens", std::to_string(config.micro_tokens),
      fmt::format("the longest sequence that is trained on has {} tokens; use at least that many", longest));
}

/// If batches count images, a full batch needs a sample for every rank.
void check_samples_of_ranks(const SampleStream& stream, std::size_t steps, const RankCounts& ranks) {
  const WorkKind work = stream.work();
  if (!work.sizes_batches) return;
  const std::size_t samples = largest_global_batch(stream, steps);
  if (samples >= ranks.ranks) return;
  fail(fmt::format("a full batch has {}, fewer than the {}; use smaller {}, a larger {} or fewer ranks",
                   count_of(samples, work.sample), count_of(ranks.ranks, "rank"), work.samples, setting("batch")));
}

/// AddressSanitizer takes an eighth of an allocation more, by which each measurement in a process would raise its peak.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool has_shadow = true;
#else
constexpr bool has_shadow = false;
#endif

/// Measures the memory of the run's matrix products besides their operands: the peak of resident memory while they are
/// computed. If the earlier peak is above the current memory, the difference is allocated meanwhile, so that a new peak
/// shows.
std::size_t measured_workspace(const MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm,
                               const Workload& workload) {
  const std::vector<GemmProduct> products = gemm.choice().products.empty()
                                                ? largest_products(workload, plan)
                                                : products_of_run(workload.model, plan.largest, workload.evaluation);
  Vector<std::byte> held;
  std::size_t begin = 0;
  warm_up(space, gemm, products, [&] {
    const std::size_t most = peak_resident_memory(), now = resident_memory();
    const std::size_t below = most - std::min(most, now);
    held = Vector<std::byte>("mylos::memory::held", has_shadow ? below / 9 * 8 : below);
    begin = std::max(peak_resident_memory(), resident_memory());
  });
  const std::size_t most = peak_resident_memory();
  return (most - std::min(most, begin)) * 9 /
         8;  // an eighth more: all threads may hold their blocks at the same moment
}

}  // namespace

void note_products(MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm, const Workload& workload) {
  if constexpr (!runs_on_host) plan.workspace = gemm.workspace_bytes(largest_products(workload, plan));
  release_unused_memory();
  plan.program = resident_memory();
  if constexpr (runs_on_host) plan.workspace = measured_workspace(plan, space, gemm, workload) + gemm.growth_bytes();
  plan.before = peak_resident_memory();  // includes the memory of measuring, above any earlier peak
}

MemoryPlan plan_memory(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankCounts& ranks) {
  using parallel::StrategyKind;
  check_settings(workload, config, steps);
  check_samples_of_ranks(workload.samples, steps, ranks);
  const WorkKind work = workload.samples.work();
  if (std::optional<MemoryPlan> recorded = plan_recorded(workload, config, steps, available, ranks)) return *recorded;
  const StrategyKind strategy = config.parallel.strategy.value_or(StrategyKind::replicated);
  MemoryPlan plan = plan_layout(workload, config, steps, available, lay_out(config, strategy, ranks), ranks);
  if (plan.total() > available && !config.parallel.strategy && ranks.ranks > 1) {
    plan = plan_layout(workload, config, steps, available, lay_out(config, StrategyKind::sharded, ranks), ranks);
  }
  if (plan.total() > available) {
    const bool is_small = gibibytes(plan.total()) < 1.0;
    const auto amount = [&](std::size_t bytes) { return gibibytes(bytes) * (is_small ? 1024.0 : 1.0); };
    fail(
        fmt::format("memory: {:.2f} {} are needed (values {:.2f}, gradients {:.2f}, optimizer {:.2f}, activations of "
                    "{} {} {:.2f}), {} are free{}; {}",
                    amount(plan.total()), is_small ? "MiB" : "GiB", amount(plan.values),
                    amount(plan.gradients + plan.exchange), amount(plan.optimizer), work.count(plan.largest.rows),
                    work.name, amount(plan.activations + plan.scratch), bytes_text(available), address_space_note(),
                    memory_advice(workload, config, plan.layout.strategy, steps, available, ranks)));
  }
  return plan;
}

}  // namespace mylos::train
