#include "train/run_banner.hpp"

#include "train/quantities.hpp"

#include <fmt/format.h>

#include <csignal>

namespace mylos::train {
namespace {

std::string line(const char* name, const std::string& text) { return fmt::format("{:<8} {}\n", name, text); }

std::string data_text(const DataDescription& data, std::size_t max_length) {
  const std::size_t room = data.windows * max_length;
  const double fill = room > 0 ? 100.0 * static_cast<double>(data.tokens) / static_cast<double>(room) : 0.0;
  return fmt::format("{}: {}, {}, {}, fill {:.0f} %", data.file, count_of(data.questions, "question"),
                     count_of(data.windows, "window"), count_of(data.tokens, "token"), fill);
}

std::string memory_text(const MemoryPlan& plan, std::size_t free) {
  return fmt::format(
      "{} at most: program {}, values {}, gradients {}, optimizer {}, activations {}, operands {}; {} are free",
      bytes_text(plan.peak()), bytes_text(plan.program), bytes_text(plan.values), bytes_text(plan.gradients),
      bytes_text(plan.optimizer), bytes_text(plan.activations), bytes_text(plan.workspace), bytes_text(free));
}

std::string ending(const RunResult& result) {
  const std::string steps = count_of(result.steps, "step");
  switch (result.signal) {
    case 0:
      return result.stopped_early ? fmt::format("stopped after {} without a better evaluation", steps)
                                  : fmt::format("done after {}", steps);
    case SIGINT:
      return fmt::format("interrupted after {}", steps);
    case SIGTERM:
      return fmt::format("ended by SIGTERM after {}", steps);
    case SIGUSR1:
      return fmt::format("ended by SIGUSR1 after {}", steps);
    default:
      return fmt::format("ended by signal {} after {}", result.signal, steps);
  }
}

}  // namespace

std::string run_banner(const RunDescription& run) {
  std::string text =
      line("model", fmt::format("{}: {}, hidden {}, {}, {}", run.model, count_of(run.layers, "layer"), run.hidden,
                                count_of(run.heads, "head"), count_of(run.parameters, "parameter")));
  text += line("train", data_text(run.train, run.max_length));
  if (!run.dev.file.empty()) text += line("dev", data_text(run.dev, run.max_length));
  text += line("compute", fmt::format("{}, matrix products by {}, {} on {}", run.precision, run.gemm,
                                      count_of(run.threads, "thread"), run.execution));
  text += line("steps", fmt::format("{} of {} ({:.4g} epochs), {} at once, {} at most", count_text(run.steps),
                                    count_of(run.batch, "sequence"), run.epochs, count_text(run.memory.largest.samples),
                                    count_of(run.memory.largest.rows, "token")));
  text += line("memory", memory_text(run.memory, run.free_memory));
  return text + line("output", run.output);
}

std::string closing_line(const RunResult& result, double total_seconds) {
  std::string text = fmt::format("{}: {} in all, training {}", ending(result), duration_text(total_seconds),
                                 duration_text(result.training_seconds));
  if (!result.best.empty()) text += "; " + metrics_text(result.best);
  return text + "\n";
}

}  // namespace mylos::train
