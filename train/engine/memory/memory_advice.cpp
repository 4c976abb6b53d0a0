#include "train/engine/memory/memory_advice.hpp"

#include "core/base/setting_error.hpp"
#include "train/engine/memory/layout_memory.hpp"
#include "train/engine/memory/run_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

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

}  // namespace

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

}  // namespace mylos::train
