#include "train/engine/memory/memory_plan.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/kernels/products/gemm_measure.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/engine/memory/rank_layout.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/selection/gemm_selection.hpp"
#include "train/engine/train_config.hpp"
#include "train/engine/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace mylos::train {
namespace {

/// Checks whether the run fits in memory, and searches for settings that do.
struct Search {
  const Workload& workload;
  std::size_t steps, available;
  RankCounts ranks;

  bool fits(TrainConfig config, parallel::StrategyKind strategy) const {
    if (!has_chosen_split(config)) config.micro_batch = 1;  // the last one that a run tries
    try {
      return plan_layout(workload, config, steps, available, lay_out(config, strategy, ranks), ranks).total() <=
             available;
    } catch (const std::runtime_error&) {
      return false;  // a layout that is impossible is no advice
    }
  }
};

/// Splits a step about twice as finely, if the user chose the split; returns false if it cannot be split further.
bool cut_finer(TrainConfig& config, const Search& search) {
  constexpr std::size_t most_micro_batch_groups = 1024;
  const auto halve = [](std::size_t& value, std::size_t least) {
    if (value <= least) return false;
    value = std::max(least, (value + 1) / 2);
    return true;
  };
  if (config.parallel.deterministic) return (config.parallel.micro_batch_groups *= 2) <= most_micro_batch_groups;
  const std::size_t batch = largest_global_batch(search.workload.samples, search.steps);
  if (config.accumulation > 0) return (config.accumulation *= 2) <= batch;
  if (config.micro_tokens > 0) return halve(config.micro_tokens, longest_sample(search.workload.samples, search.steps));
  if (search.workload.samples.work().sizes_batches) {
    return config.micro_batch > 0 && halve(config.micro_batch, longest_sample(search.workload.samples, search.steps));
  }
  config.micro_batch = std::min(config.micro_batch, batch);
  return config.micro_batch > 0 && halve(config.micro_batch, 1);
}

std::string words_of_cut(const TrainConfig& config) {
  if (config.parallel.deterministic) return setting("leaves", std::to_string(config.parallel.micro_batch_groups));
  if (config.accumulation > 0) return setting("gradient-accumulation-steps", std::to_string(config.accumulation));
  if (config.micro_tokens > 0) return setting("micro-tokens", std::to_string(config.micro_tokens));
  return setting("micro-batch", std::to_string(config.micro_batch));
}

/// Returns `words`, with a finer split of a step if that is also needed; empty if nothing fits.
std::string fitting_words(const Search& search, TrainConfig config, parallel::StrategyKind strategy,
                          std::string words) {
  if (!words.empty() && search.fits(config, strategy)) return words;
  while (cut_finer(config, search)) {
    if (!search.fits(config, strategy)) continue;
    return words.empty() ? words_of_cut(config) : fmt::format("{} {}", words_of_cut(config), words);
  }
  return {};
}

/// Returns the longest sequence length, in steps of 32 tokens, that fits in `strategy` with one sequence per
/// micro-batch; 0 if none does. Below 160 tokens a window has almost no room for context.
std::size_t fitting_length(const Search& search, TrainConfig config, parallel::StrategyKind strategy) {
  constexpr std::size_t step = 32, least = 160;
  if (config.accumulation > 0 || config.parallel.deterministic) return 0;
  if (search.workload.samples.work().sizes_batches) return 0;  // the length of samples is fixed
  config.micro_batch = 1;
  config.micro_tokens = 0;
  const auto& [workload, steps, available, ranks] = search;
  constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  MemoryPlan plan = plan_layout(workload, config, steps, unlimited, lay_out(config, strategy, ranks), ranks);
  for (std::size_t length = (plan.largest.longest - 1) / step * step; length >= least; length -= step) {
    plan = with_micro_batch(plan, {1, length, length}, workload, config.recompute, ranks);
    if (plan.total() <= available) return length;
  }
  return 0;
}

std::string length_words(const TrainConfig& config, std::size_t length) {
  const std::string number = std::to_string(length), words = setting("max-length", number);
  if (config.micro_tokens > 0) return fmt::format("{} {}", words, setting("micro-tokens", number));
  return config.micro_batch > 1 ? fmt::format("{} {}", words, setting("micro-batch", "1")) : words;
}

/// Returns the smallest number of ranks with the same memory each on which the run fits, and their sharding strategy;
/// empty if no number is enough.
std::string words_of_more_ranks(Search search, const TrainConfig& config, const TrainConfig& recomputing) {
  using parallel::StrategyKind;
  constexpr std::size_t most = 4096;
  const bool on_host = search.ranks.on_host;
  const std::size_t threads = search.ranks.threads;
  for (std::size_t count = 2 * search.ranks.ranks; count <= most; count *= 2) {
    search.ranks = {.ranks = count, .nodes = 1, .of_node = count, .on_host = on_host, .threads = threads};
    for (const StrategyKind strategy : {StrategyKind::sharded_gradients, StrategyKind::sharded}) {
      for (const TrainConfig* each : {&config, &recomputing}) {
        if (!search.fits(*each, strategy)) continue;
        return fmt::format("{} {} with {}{}", count, on_host ? "ranks of as much memory" : "GPUs",
                           setting("mode", to_string(strategy)),
                           each == &config ? "" : " " + setting("recompute", "layer"));
      }
    }
  }
  return {};
}

/// Suggests shorter sequences and more ranks, if no setting of this launch is enough.
std::string farther_advice(const Search& search, TrainConfig config, TrainConfig recomputing,
                           parallel::StrategyKind strategy) {
  std::string all;
  std::size_t length = fitting_length(search, config, strategy);
  if (length > 0) {
    all = "it fits with " + length_words(config, length);
  } else if (length = fitting_length(search, recomputing, strategy); length > 0) {
    all = fmt::format("it fits with {} {}", setting("recompute", "layer"), length_words(config, length));
  }
  config.parallel.shard_size = recomputing.parallel.shard_size = 0;
  const std::string ranks = words_of_more_ranks(search, config, recomputing);
  if (!ranks.empty()) all += fmt::format("{}on {}", all.empty() ? "it fits " : ", or ", ranks);
  return all.empty() ? "use a smaller model" : all;
}

/// Suggests changes for a run of `steps` steps that needs more than `available` bytes on a rank in `strategy`. Returns
/// alternatives, each of which makes it fit: finer splits of a step, recomputation and sharding, or else shorter
/// samples and more ranks: "it fits with --micro-batch 4, or with --recompute layer".
std::string memory_advice(const Workload& workload, const TrainConfig& config, parallel::StrategyKind strategy,
                          std::size_t steps, std::size_t available, const RankCounts& ranks) {
  using parallel::StrategyKind;
  const Search search{workload, steps, available, ranks};
  const bool may_recompute =
      config.recompute != nn::Recompute::layer && workload.model.can_recompute(nn::Recompute::layer);
  const bool may_shard = ranks.ranks > 1 && strategy != StrategyKind::sharded;
  TrainConfig recomputing = config;
  recomputing.recompute = nn::Recompute::layer;
  std::string all;
  const auto offer = [&](const TrainConfig& changed, StrategyKind changed_strategy, const std::string& words) {
    const std::string fitting = fitting_words(search, changed, changed_strategy, words);
    if (!fitting.empty()) all += fmt::format("{}{}", all.empty() ? "it fits with " : ", or with ", fitting);
  };
  offer(config, strategy, "");
  const std::string recompute = setting("recompute", "layer"), shard = setting("mode", "sharded");
  if (may_recompute) offer(recomputing, strategy, recompute);
  if (may_shard) offer(config, StrategyKind::sharded, shard);
  if (all.empty() && may_recompute && may_shard) {
    offer(recomputing, StrategyKind::sharded, fmt::format("{} {}", recompute, shard));
  }
  return all.empty() ? farther_advice(search, config, may_recompute ? recomputing : config, strategy) : all;
}

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
