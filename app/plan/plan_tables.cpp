#include "app/plan/plan_tables.hpp"

#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace mylos::app {
namespace {

using StrategyPlans = std::span<const train::StrategyPlan>;

void print_memory(StrategyPlans plans) {
  const bool has_images =
      std::ranges::any_of(plans, [](const train::StrategyPlan& plan) { return plan.host_staging > 0; });
  const auto row = [&](const std::string& images, const auto&... cells) {
    const std::string line = fmt::format("{:18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}", cells...);
    print(line + (has_images ? fmt::format(" {:>10}\n", images) : "\n"));
  };
  const auto size = [](std::size_t bytes) { return bytes_text(bytes); };
  row("host, MPI", "memory of a rank", "all", "program", "values", "gradients", "optimizer", "activations", "workspace",
      "exchange");
  for (const train::StrategyPlan& plan : plans) {
    const train::MemoryPlan& memory = plan.memory;
    row(size(plan.host_staging), to_string(plan.strategy), size(memory.peak()), size(memory.program),
        size(memory.values), size(memory.gradients), size(memory.optimizer), size(memory.activations),
        size(memory.workspace + memory.scratch), size(memory.exchange));
  }
  if (has_images) print("host, MPI: copies of device arrays in host memory, if they are exchanged over MPI\n");
}

/// Returns four significant digits, without an exponent.
std::string digits(double value) {
  return value < 1000.0 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

void print_times(StrategyPlans plans, const train::WorkKind& work) {
  const auto row = [](const auto&... cells) {
    print(fmt::format("{:18} {:>6} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}\n", cells...));
  };
  print("\n");
  row("time", "fits", "micro-batch", "step ms", "compute", "optimizer", "comm. wait", work.name + "/s", "job");
  for (const train::StrategyPlan& plan : plans) {
    row(to_string(plan.strategy), plan.fits ? "yes" : "no", work.batch_size(plan.memory.largest),
        digits(1e3 * plan.step.total()), digits(1e3 * plan.step.compute), digits(1e3 * plan.step.optimizer),
        digits(1e3 * plan.step.exposed), digits(work.count(plan.tokens) / plan.step.total()),
        duration_text(plan.job()));
  }
}

/// Prints the largest micro-batch for each recomputation, on a rank and on all ranks together.
void print_largest(StrategyPlans plans, const train::WorkKind& work, std::size_t ranks) {
  print(fmt::format("\nlargest micro-batch, in {}{}\n",
                    work.sizes_batches ? work.name : work.samples + " as long as the longest",
                    ranks > 1 ? fmt::format("; in brackets: on all {} ranks together", ranks) : ""));
  std::string head = fmt::format("{:18}", "--recompute");
  for (const train::LargestMicroBatch& one : plans.front().largest_of_each) {
    head += fmt::format(" {:>14}", nn::to_string(one.recompute));
  }
  print(head + "\n");
  for (const train::StrategyPlan& plan : plans) {
    std::string line = fmt::format("{:18}", to_string(plan.strategy));
    for (const train::LargestMicroBatch& one : plan.largest_of_each) {
      const std::string all = ranks > 1 ? fmt::format(" ({})", one.samples * ranks) : "";
      line += fmt::format(" {:>14}", one.samples == 0 ? "does not fit" : fmt::format("{}{}", one.samples, all));
    }
    print(line + "\n");
  }
}

void print_efficiency(StrategyPlans plans) {
  std::string head = fmt::format("{:18}", "GPUs");
  for (const auto& [count, share] : plans.front().efficiency) head += fmt::format(" {:>5}", count);
  print("\nefficiency, with the same work per step on each\n" + head + "\n");
  for (const train::StrategyPlan& plan : plans) {
    std::string line = fmt::format("{:18}", to_string(plan.strategy));
    for (const auto& [count, share] : plan.efficiency) line += fmt::format(" {:>4.0f}%", 100.0 * share);
    print(line + "\n");
  }
}

/// Returns whether the table shows more than 100 %.
bool exceeds_all(const train::StrategyPlan& plan) {
  constexpr double shown_as_more = 1.005;
  return std::ranges::any_of(plan.efficiency, [](const auto& entry) { return entry.second >= shown_as_more; });
}

/// Returns notes on micro-batches that were reduced to fit, and on efficiencies above 100 %.
std::string notes(StrategyPlans plans, const train::WorkKind& work) {
  std::string text;
  for (const train::StrategyPlan& plan : plans) {
    const train::MemoryPlan& memory = plan.memory;
    if (!plan.fits || memory.largest.samples >= memory.asked) continue;
    text += fmt::format("{}: planned with a micro-batch of {}, because the {} of a rank's step do not fit together\n",
                        to_string(plan.strategy), count_of(memory.largest.samples, work.sample), memory.asked);
  }
  if (std::ranges::any_of(plans, exceeds_all)) {
    text += "efficiencies above 100 %: each rank updates only its slice of the parameters, one GPU all of them\n";
  }
  return text;
}

}  // namespace

std::string batch_note(const train::StrategyPlan& plan, const train::WorkKind& work, const train::RankCounts& ranks) {
  constexpr double enough = 0.75;
  if (plan.busy() >= enough || work.sizes_batches) return {};
  const std::string better = plan.efficient_batch == 0
                                 ? "no batch would reach 90 %"
                                 : fmt::format("a batch of {} would reach 90 %", plan.efficient_batch);
  return fmt::format("{}: {} on {} {}: {} {} of {} ms; {}", to_string(plan.strategy), count_of(plan.batch, work.sample),
                     ranks.ranks, ranks.on_host ? "ranks" : "GPUs",
                     ranks.nodes > 1 ? "the network takes" : "exchanging takes", digits(1e3 * plan.step.exposed),
                     digits(1e3 * plan.step.total()), better);
}

void print_tables(std::span<const train::StrategyPlan> plans, const train::WorkKind& work, std::size_t ranks) {
  print_memory(plans);
  print_times(plans, work);
  print_largest(plans, work, ranks);
  print_efficiency(plans);
  if (const std::string text = notes(plans, work); !text.empty()) print("\n" + text);
}

}  // namespace mylos::app
