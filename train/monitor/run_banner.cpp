#include "train/monitor/run_banner.hpp"

#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace mylos::train {
namespace {

/// Describes the memory of one rank, and the free memory for all ranks of its node.
std::string memory_text(const RunDescription& run) {
  const MemoryPlan& plan = run.memory;
  const std::string exchange = plan.exchange > 0 ? fmt::format(", exchange {}", bytes_text(plan.exchange)) : "";
  const std::string output = plan.output > 0 ? fmt::format(", output {}", bytes_text(plan.output)) : "";
  return fmt::format(
      "{} at most{}: program {}, values {}, gradients {}{}, optimizer {}, activations {}, GEMM workspace and kernel "
      "scratch {}{}; {} are free",
      bytes_text(plan.peak()), run.ranks > 1 ? " on a rank" : "", bytes_text(plan.program), bytes_text(plan.values),
      bytes_text(plan.gradients), exchange, bytes_text(plan.optimizer), bytes_text(plan.activations),
      bytes_text(plan.workspace + plan.scratch), output, bytes_text(run.free_memory));
}

std::string ranks_text(const RunDescription& run) {
  const RankLayout& layout = run.memory.layout;
  const std::string groups = layout.strategy == parallel::StrategyKind::hybrid
                                 ? fmt::format(" in groups of {}", count_of(layout.shards, "rank"))
                                 : "";
  const std::string micro_batch_groups =
      layout.split.micro_batch_groups > 0
          ? fmt::format(", deterministic in {} micro-batch groups", layout.split.micro_batch_groups)
          : "";
  return fmt::format("{} on {}, {} each; {}{}{}", run.ranks, count_of(run.nodes, "node"),
                     count_of(run.threads, "thread"), to_string(layout.strategy), groups, micro_batch_groups);
}

/// States the size of a micro-batch only once if a sample is the unit of work.
std::string steps_text(const RunDescription& run) {
  const BatchShape& largest = run.memory.largest;
  const std::string text = fmt::format("{} steps x batch {} = {:.4g} epochs; micro-batch {}", count_text(run.steps),
                                       count_text(run.batch), run.epochs, count_text(run.work.batch_size(largest)));
  if (run.work.sizes_batches) {
    return fmt::format("{} {} in {}", text, run.work.name, count_of(largest.samples, run.work.sample));
  }
  if (run.work.samples == run.work.name) return text;
  return fmt::format("{}, up to {}", text, count_of(run.work.count(largest.rows), run.work.singular));
}

std::string ending(const RunResult& result) {
  const std::string steps = count_of(result.steps, "step");
  if (result.signal != 0) return fmt::format("{} after {}", interruption_text(result), steps);
  return result.stopped_early ? fmt::format("stopped after {} without a better evaluation", steps)
                              : fmt::format("done after {}", steps);
}

/// Returns the training time of this start, and of all starts if there were earlier ones.
std::string training_text(const RunResult& result) {
  const std::string here = duration_text(result.training_seconds - result.earlier_seconds);
  if (result.earlier_seconds == 0.0) return here;
  return fmt::format("{} ({} with earlier starts)", here, duration_text(result.training_seconds));
}

std::string placement_text(const parallel::RankPlacement& placement, bool with_job) {
  std::string text = placement.host;
  if (with_job) text += fmt::format(", {}", placement.job.empty() ? "no job" : placement.job);
  if (!placement.device_name.empty()) text += fmt::format(", {} ({})", placement.device_name, placement.device);
  return text + ", processors " + placement.processors;
}

}  // namespace

std::string parameters_text(std::size_t parameters, std::size_t frozen) {
  const std::string all = count_of(parameters, "parameter");
  return frozen == 0 ? all : fmt::format("{}, {} of them frozen", all, count_text(frozen));
}

std::string run_banner(const RunDescription& run) {
  std::string text = named_line("model", fmt::format("{}, {}", run.model, parameters_text(run.parameters, run.frozen)));
  text += named_line("train", run.train);
  if (!run.dev.empty()) text += named_line("dev", run.dev);
  const std::string scale = run.loss_scale.adapts() ? fmt::format(", loss scale {}", run.loss_scale.value()) : "";
  text += named_line("compute", fmt::format("{}{}, matrix products by {}, {} on {}", run.precision, scale, run.gemm,
                                            count_of(run.threads, "thread"), run.execution));
  if (run.ranks > 1 || run.memory.layout.split.micro_batch_groups > 0) text += named_line("ranks", ranks_text(run));
  text += rank_lines(run.placements);
  if (!run.load.empty()) text += named_line("load", run.load + ": steps take longer");
  text += named_line("steps", steps_text(run));
  text += named_line("memory", memory_text(run));
  return text + named_line("output", run.output);
}

std::string interruption_text(const RunResult& result) {
  switch (result.signal) {
    case 0:
      return {};
    case SIGINT:
      return "interrupted";
    case SIGTERM:
      return "ended by SIGTERM";
    case SIGUSR1:
      return result.out_of_time ? "out of walltime" : "ended by SIGUSR1";
    default:
      return fmt::format("ended by signal {}", result.signal);
  }
}

std::string closing_line(const RunResult& result, double total_seconds) {
  std::string text =
      fmt::format("{}: {} in all, training {}", ending(result), duration_text(total_seconds), training_text(result));
  if (result.skipped > 0) text += fmt::format(", {} skipped", count_of(result.skipped, "step"));
  if (result.joules) text += ", " + energy_text(*result.joules);
  if (!result.best.empty()) text += "; " + metrics_text(result.best);
  return text + "\n";
}

std::string rank_lines(std::span<const parallel::RankPlacement> placements) {
  if (placements.empty()) return "";
  if (placements.size() == 1 && placements.front().job.empty() && placements.front().device_name.empty()) return "";
  const bool one_job = std::ranges::all_of(
      placements, [&](const parallel::RankPlacement& placement) { return placement.job == placements.front().job; });
  std::string lines;
  if (one_job && !placements.front().job.empty()) lines += named_line("job", placements.front().job);
  for (std::size_t first = 0, end = 0; first < placements.size(); first = end) {
    const std::string text = placement_text(placements[first], !one_job);
    for (end = first + 1; end < placements.size() && placement_text(placements[end], !one_job) == text;) ++end;
    const std::string ranks = end - first == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, end - 1);
    lines += named_line("rank", fmt::format("{}: {}", ranks, text));
  }
  return lines;
}

}  // namespace mylos::train
