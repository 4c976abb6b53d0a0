#include "train/monitor/profile.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::train {

void Profile::step(const StepReport& report) {
  steps_.add(report.seconds);
  data_.add(report.parts.data);
  if (report.parts.exchange) exchanges_.add(*report.parts.exchange);
  if (report.parts.update) updates_.add(*report.parts.update);
}

std::string Profile::table(double seconds) const {
  std::string text = fmt::format("{:<32}{:>9}{:>12}{:>12}{:>8}\n", "action", "calls", "mean (s)", "total (s)", "%");
  const auto add = [&](std::string_view name, const Action& action) {
    if (action.calls == 0) return;
    text += fmt::format("{:<32}{:>9}{:>12.5f}{:>12.2f}{:>8.1f}\n", name, action.calls,
                        action.total / static_cast<double>(action.calls), action.total,
                        seconds > 0.0 ? 100.0 * action.total / seconds : 0.0);
  };
  const double passes = steps_.total - data_.total - exchanges_.total - updates_.total;
  const double covered = steps_.total + evaluations_.total + checkpoints_.total;
  add("step", steps_);
  if (updates_.calls > 0) {  // the host of a device does not see the parts of its steps
    add("  forward and backward passes", {std::max(0.0, passes), steps_.calls});
    add("  waiting for other ranks", exchanges_);
    add("  optimizer", updates_);
    add("  making batches", data_);
  }
  add("evaluation", evaluations_);
  add("checkpoint", checkpoints_);
  add("start, exports and the rest", {std::max(0.0, seconds - covered), 1});
  add("all", {seconds, 1});
  return text;
}

}  // namespace mylos::train
