#include "train/planning/run_plan.hpp"

#include "core/base/error.hpp"
#include "parallel/planning/staging.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/pieces.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mylos::train {
namespace {

using parallel::StrategyKind;

constexpr std::size_t most_steps_looked_at = 64;

/// Averages over the run's steps of the ranks' work.
struct MeanStep {
  double slowest = 0.0;  ///< operations of the busiest rank, including recomputation
  double mean = 0.0;     ///< mean operations of a rank
  double tokens = 0.0;
  double micro_batches = 0.0;
};

double flops_of(const Workload& workload, nn::Recompute recompute, std::span<const std::size_t> samples,
                std::span<const Positions> micro_batches) {
  double flops = 0.0;
  for (const Positions& positions : micro_batches) {
    if (positions.empty()) continue;
    BatchShape shape{.samples = positions.size()};
    for (const std::size_t position : positions) shape.rows += workload.samples.rows_of(samples[position]);
    flops += workload.model.training_flops(shape, recompute);
  }
  return flops;
}

MeanStep mean_step(const Workload& workload, nn::Recompute recompute, std::size_t steps, const MemoryPlan& plan) {
  MeanStep sum;
  const std::size_t count = std::min(steps, most_steps_looked_at);
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::size_t> samples = workload.samples.global_batch(i * (steps / count));
    const StepSplit& split = plan.layout.split;
    const StepAssignment assignment =
        assign_step(workload.samples, samples, plan.limit, without_idle_ranks(split, samples.size()));
    double most = 0.0, all = 0.0;
    for (const std::vector<Positions>& own : assignment.ranks) {
      const double flops = flops_of(workload, recompute, samples, own);
      most = std::max(most, flops);
      all += flops;
    }
    sum.slowest += most;
    sum.mean += all / static_cast<double>(split.ranks);
    for (const std::size_t sample : samples) sum.tokens += static_cast<double>(workload.samples.rows_of(sample));
    sum.micro_batches += static_cast<double>(assignment.micro_batches());
  }
  const auto steps_seen = static_cast<double>(count);
  return {sum.slowest / steps_seen, sum.mean / steps_seen, sum.tokens / steps_seen, sum.micro_batches / steps_seen};
}

/// Returns the fraction of a pass's work for each unit of the network. It is proportional to the unit's size, capped at
/// the median, because larger units are tables in which rows are looked up.
std::vector<double> unit_shares(const ParameterTable& table) {
  std::vector<double> sizes(table.network_units());
  for (std::size_t unit = 0; unit < sizes.size(); ++unit) {
    for (const std::size_t part : table.parts(unit)) sizes[unit] += static_cast<double>(table.units()[part].size);
  }
  std::vector<double> sorted = sizes;
  std::ranges::sort(sorted);
  const double middle = sorted[sorted.size() / 2];
  double sum = 0.0;
  for (double& size : sizes) sum += size = std::min(size, middle);
  for (double& size : sizes) size /= sum;
  return sizes;
}

/// Predicts a step whose slowest rank spends `seconds` in passes.
StepTime time_of(const Workload& workload, const TrainConfig& config, const PlanTarget& target, const RankCounts& ranks,
                 std::size_t shards, double seconds, std::size_t micro_batches) {
  const ParameterTable& table = workload.model.table();
  const std::vector<double> shares = unit_shares(table);
  const auto value = static_cast<double>(bytes_of(config.precision));
  const double gradient = config.parallel.bfloat16_gradients ? 2.0 : 4.0;
  std::vector<UnitWork> units;
  // A forward pass is a third of a unit's work, the gradients of its input and of its weights are the others.
  const auto backward = [&](std::size_t u) {
    return u < table.first_trained_unit() ? 0.0 : table.units()[u].trained ? 2.0 : 1.0;
  };
  double thirds = 3.0;
  for (std::size_t u = 0; u < shares.size(); ++u) thirds -= shares[u] * (2.0 - backward(u));
  for (std::size_t u = 0; u < table.units().size(); ++u) {
    const double work = u < shares.size() ? shares[u] * seconds / static_cast<double>(micro_batches) : 0.0;
    const auto size = static_cast<double>(table.units()[u].size);
    units.push_back({work / thirds, backward(u) * work / thirds, value * size, gradient * size});
  }
  const double slices = static_cast<double>(table.trained_size()) / static_cast<double>(shards);
  const Links links{.local = target.machine.link,
                    .of_node = ranks.of_node,
                    .network = target.network,
                    .by_node = target.ranks.on_host,
                    .copies = target.machine.copies,
                    .contention = target.machine.contention};
  const StepLayout layout{.strategy = *config.parallel.strategy,
                          .ranks = ranks.ranks,
                          .shards = shards,
                          .micro_batches = micro_batches,
                          .partial = sizeof(float) / gradient};
  return step_time(layout, links, table, units,
                   optimizer_bytes(config.optimizer.kind()) * slices / target.rate.bandwidth);
}

/// Returns the smallest batch, a multiple of the number of ranks, with at least 90 % of the step spent computing, in
/// micro-batches of at most plan.largest. `seconds` is the time of the passes per sample.
std::size_t find_efficient_batch(const Workload& workload, const TrainConfig& config, const PlanTarget& target,
                                 const StrategyPlan& plan, double seconds) {
  constexpr double wanted = 0.9;
  constexpr std::size_t most = 65536;  // samples per rank
  const auto reaches = [&](std::size_t samples) {
    const std::size_t at_once = std::max<std::size_t>(plan.largest, 1);
    const StepTime step = time_of(workload, config, target, target.ranks, plan.memory.layout.shards,
                                  seconds * static_cast<double>(samples), (samples + at_once - 1) / at_once);
    return step.total() - step.exposed >= wanted * step.total();
  };
  std::size_t high = 1;
  while (high <= most && !reaches(high)) high *= 2;
  if (high > most) return 0;
  std::size_t low = high / 2;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (reaches(middle) ? high : low) = middle;
  }
  return high * target.ranks.ranks;
}

/// Returns pairs of rank count and fraction of the ideal throughput, with the work of one rank in this plan on each
/// rank.
std::vector<std::pair<std::size_t, double>> efficiencies(const Workload& workload, const TrainConfig& config,
                                                         const PlanTarget& target, const MeanStep& mean,
                                                         std::size_t micro_batches, double seconds_per_flop) {
  constexpr std::size_t most = 4096;
  const double alone = time_of(workload, config, target, {}, 1, mean.mean * seconds_per_flop, micro_batches).total();
  std::vector<std::pair<std::size_t, double>> result;
  for (std::size_t count = 1; count <= most; count *= 2) {
    const std::size_t of_node = std::min(count, std::max<std::size_t>(target.ranks.of_node, 1));
    const RankCounts ranks{.ranks = count, .nodes = count / of_node, .of_node = of_node};
    const std::size_t shards = parallel::ranks_that_split(*config.parallel.strategy, of_node, count);
    const double work = (count == 1 ? mean.mean : mean.slowest) * seconds_per_flop;
    result.emplace_back(count, alone / time_of(workload, config, target, ranks, shards, work, micro_batches).total());
  }
  return result;
}

/// Returns the smallest other kind of GPU of the same vendor with enough memory; empty if there is none.
std::string larger_kind(const Workload& workload, const TrainConfig& config, std::size_t steps,
                        const PlanTarget& target) {
  std::vector<Machine> kinds(gpu_kinds().begin(), gpu_kinds().end());
  std::ranges::stable_sort(kinds, {}, &Machine::memory);
  for (const Machine& kind : kinds) {
    PlanTarget other = target;
    other.machine = kind;
    const std::size_t available = room_of(other, *config.parallel.strategy);
    const bool is_larger = available > room_of(target, *config.parallel.strategy);
    const bool is_of_vendor = kind.architecture.vendor == target.machine.architecture.vendor;
    if (kind.name == target.machine.name || kind.peak(config.precision) == 0.0 || !is_larger || !is_of_vendor) continue;
    try {
      RankCounts ranks = target.ranks;
      ranks.threads = kind.threads;
      ranks.architecture = kind.architecture;
      plan_memory(workload, config, steps, available, ranks);
      return kind.name;
    } catch (const std::runtime_error&) {
      continue;
    }
  }
  return {};
}

void add_memory(const Workload& workload, const TrainConfig& config, std::size_t steps, const PlanTarget& target,
                StrategyPlan& plan) {
  const std::size_t room = room_of(target, *config.parallel.strategy);
  try {
    plan.memory = plan_memory(workload, config, steps, room, target.ranks);
    plan.fits = true;
  } catch (const std::runtime_error& error) {
    plan.obstacle = error.what();
    const std::string kind = target.ranks.on_host ? "" : larger_kind(workload, config, steps, target);
    if (!kind.empty()) plan.obstacle += ", or on " + kind;
    plan.memory = plan_memory(workload, config, steps, std::numeric_limits<std::size_t>::max(), target.ranks);
  }
  plan.memory.program = target.program;
  plan.largest_of_each = largest_micro_batches(workload, plan.memory, target.ranks, room);
  for (const LargestMicroBatch& each : plan.largest_of_each) {
    if (each.recompute == config.recompute) plan.largest = each.samples;
  }
}

/// Returns the larger figure of a run with evaluations and one without.
std::size_t host_staging(const Workload& workload, const TrainConfig& config, std::size_t steps,
                         const RankCounts& ranks, const MemoryPlan& memory) {
  if (ranks.on_host || ranks.ranks == 1) return 0;
  const std::size_t shards = memory.layout.shards, samples = largest_global_batch(workload.samples, steps);
  const parallel::UnitExchanges exchanges{memory.strategy, shards, ranks.ranks / shards, config.precision,
                                          workload.model.table()};
  const auto bytes = [&](bool evaluates) {
    return parallel::staging_bytes(exchanges, {piece_elements, evaluates, samples});
  };
  return std::max(bytes(false), bytes(true));
}

/// Includes the checkpoint after the last step, which every run with an interval writes.
double checkpoints_of_run(const Workload& workload, const CheckpointConfig& checkpoints, double training,
                          std::size_t steps) {
  if (!checkpoints.regular()) return 0.0;
  const std::size_t every = checkpoints.every_steps > 0 ? checkpoints.every_steps
                            : checkpoints.every_epoch   ? workload.samples.steps_per_epoch()
                                                        : 0;
  if (every > 0) {
    const std::size_t saves = (steps + every - 1) / every;
    return static_cast<double>(saves);
  }
  return std::floor(training / checkpoints.every_seconds) + 1.0;
}

double checkpoint_seconds(const Workload& workload, const TrainConfig& config, const PlanTarget& target,
                          double training, std::size_t steps) {
  const ParameterTable& table = workload.model.table();
  const auto parameters = static_cast<double>(table.size()), frozen = static_cast<double>(table.frozen_size());
  const double count = checkpoints_of_run(workload, config.checkpoints, training, steps);
  // Bytes per parameter: the master weight, which is saved once if it is frozen; the optimizer's slots; best/ and
  // last/.
  constexpr double master = 4.0, models = 8.0;
  const double slots = 4.0 * static_cast<double>(config.optimizer.kind().slots.size());
  const double saved = count * (parameters - frozen) * (master + slots) + std::min(count, 1.0) * frozen * master;
  return (saved + parameters * models) / target.storage;
}

}  // namespace

std::vector<StrategyKind> possible_strategies(const RankCounts& ranks) {
  const bool has_groups = ranks.nodes > 1 && ranks.of_node > 1;
  std::vector<StrategyKind> strategies;
  for (const parallel::StrategyDescription& strategy : parallel::every_strategy()) {
    if (strategy.shards_optimizer && ranks.ranks == 1) continue;
    if (strategy.kind != StrategyKind::hybrid || has_groups) strategies.push_back(strategy.kind);
  }
  return strategies;
}

double kept_bytes_per_flop(const nn::Model& model, const BatchShape& shape) {
  Arena arena;
  model.plan(arena, shape, ParameterStore::Purpose::training, nn::Recompute::none);
  return static_cast<double>(arena.peak()) / model.training_flops(shape);
}

double seconds_per_flop(const ComputeRate& rate, double kept_per_flop) {
  // Kept activations are written once and read once in each direction, and so are their gradients and the activations
  // that are not kept. Chosen by comparison with published runs of sharded training (docs/plan.md).
  constexpr double passes = 10.0, least = 0.25;
  if (rate.kept_per_flop == 0.0) return 1.0 / rate.flops;
  const double more = passes * (kept_per_flop - rate.kept_per_flop) / rate.bandwidth;
  return std::max(1.0 / rate.flops + more, least / rate.flops);
}

std::size_t connections_of(const PlanTarget& target, StrategyKind strategy) {
  return target.connections ? target.connections(target.machine, strategy) : 0;
}

std::size_t room_of(const PlanTarget& target, StrategyKind strategy) {
  const std::size_t taken = target.machine.reserved + connections_of(target, strategy) + target.program;
  return target.machine.memory > taken ? target.machine.memory - taken : 0;
}

std::size_t largest_micro_batch_that_fits(const Workload& workload, const MemoryPlan& plan, const RankCounts& ranks,
                                          nn::Recompute recompute, std::size_t available) {
  const auto fits = [&](std::size_t samples) {
    const BatchShape shape{samples, samples * plan.largest.longest, plan.largest.longest};
    return with_micro_batch(plan, shape, workload, recompute, ranks).total() <= available;
  };
  constexpr std::size_t most = 65536;
  std::size_t low = 0, high = 1;
  while (high <= most && fits(high)) low = std::exchange(high, 2 * high);
  while (high - low > 1 && high <= most) {
    const std::size_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low * (workload.samples.work().sizes_batches ? plan.largest.longest : 1);
}

std::vector<LargestMicroBatch> largest_micro_batches(const Workload& workload, const MemoryPlan& plan,
                                                     const RankCounts& ranks, std::size_t available) {
  std::vector<LargestMicroBatch> all;
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer}) {
    if (!workload.model.can_recompute(recompute)) continue;
    all.push_back({recompute, largest_micro_batch_that_fits(workload, plan, ranks, recompute, available)});
  }
  return all;
}

double optimizer_bytes(const nn::OptimizerKind& kind) {
  return sizeof(float) * static_cast<double>(5 + 2 * kind.slots.size());
}

StrategyPlan plan_run(const Workload& workload, const TrainConfig& config, const PlanTarget& target) {
  require(config.parallel.strategy.has_value(), "plan_run: no mode is given");
  StrategyPlan plan{.strategy = *config.parallel.strategy};
  const std::size_t steps = total_steps(config, workload.samples);
  add_memory(workload, config, steps, target, plan);
  plan.host_staging = host_staging(workload, config, steps, target.ranks, plan.memory);
  const MeanStep mean = mean_step(workload, config.recompute, steps, plan.memory);
  const auto micro_batches = static_cast<std::size_t>(std::max(1.0, std::round(mean.micro_batches)));
  plan.kept_per_flop = kept_bytes_per_flop(workload.model, plan.memory.largest);
  const double operation = seconds_per_flop(target.rate, plan.kept_per_flop);
  plan.step = time_of(workload, config, target, target.ranks, plan.memory.layout.shards, mean.slowest * operation,
                      micro_batches);
  plan.batch = largest_global_batch(workload.samples, steps);
  const std::size_t own = (plan.batch + target.ranks.ranks - 1) / target.ranks.ranks;
  plan.efficient_batch =
      find_efficient_batch(workload, config, target, plan, mean.slowest * operation / static_cast<double>(own));
  plan.tokens = mean.tokens;
  plan.training = static_cast<double>(steps) * plan.step.total();
  plan.checkpoints = checkpoint_seconds(workload, config, target, plan.training, steps);
  plan.efficiency = efficiencies(workload, config, target, mean, micro_batches, operation);
  return plan;
}

}  // namespace mylos::train
