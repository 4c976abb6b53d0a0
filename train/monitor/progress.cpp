#include "train/monitor/progress.hpp"

#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::train {
namespace {

constexpr double rate_seconds = 5.0;     // window for measuring the rate of work
constexpr double loss_memory = 0.95;     // weight of earlier losses, so about 20 steps count
constexpr double refresh_seconds = 0.1;  // between refreshes of the line
constexpr std::size_t plain_lines = 20;  // plain lines per run, evenly spaced,
constexpr double plain_at_least = 10.0;  // but at least this many seconds apart
constexpr double plain_at_most = 60.0;   // and at most this many
constexpr std::size_t default_width = 80;
constexpr std::size_t narrowest_bar = 8, widest_bar = 20;

// ANSI X3.64: move to the beginning of the line, and erase to its end.
constexpr std::string_view clear_line = "\r\x1b[K";

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t stderr_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : default_width;
}

/// Joins the parts that are not empty.
std::string joined(std::vector<std::string> parts) {
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "  "));
}

/// Returns the first two metrics that are not losses: "exact 40.12, f1 50.5".
std::string scores_text(const Metrics& metrics) {
  constexpr std::size_t most = 2;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, value] : metrics) {
    if (name.ends_with("loss") || count == most) continue;
    text += fmt::format("{}{} {:.4g}", count++ == 0 ? "" : ", ", name, value);
  }
  return text;
}

/// Draws "[=====>    ]" of `width` columns.
std::string bar(double fraction, std::size_t width) {
  const std::size_t inside = width - 2;
  const auto done = std::min(inside, static_cast<std::size_t>(fraction * static_cast<double>(inside)));
  std::string line = "[" + std::string(done, '=') + std::string(inside - done, ' ') + "]";
  if (done < inside) line[done + 1] = '>';
  return line;
}

std::string evaluation_line(const EvaluationReport& report) {
  return fmt::format("step {}: {} (took {}){}\n", report.step, metrics_text(report.metrics),
                     duration_text(report.seconds), report.best ? ", the best so far" : "");
}

/// Returns the peak memory of this process.
std::string resident_text(const StepReport& report) { return report.memory > 0 ? bytes_text(report.memory) : ""; }

std::string skipped_line(const StepReport& report) {
  return fmt::format(
      "step {}: the gradient is not finite with loss scale {}: the update is skipped, and the next step has {}\n",
      report.step, *report.loss_scale, 0.5 * *report.loss_scale);
}

std::string checkpoint_line(const CheckpointReport& report) {
  if (!report.error.empty()) return fmt::format("step {}: no checkpoint: {}\n", report.step, report.error);
  const double rate = report.seconds > 0.0 ? static_cast<double>(report.bytes) / report.seconds : 0.0;
  return fmt::format("step {}: checkpoint {}, {} in {:.2f} s, {}/s\n", report.step, report.file.filename().string(),
                     bytes_text(report.bytes), report.seconds, bytes_text(static_cast<std::size_t>(rate)));
}

std::string checkpoint_warning(const CheckpointReport& report) {
  return fmt::format("step {}: warning: the checkpoint is complete, but {}\n", report.step, report.warning);
}

}  // namespace

ProgressView stderr_view() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return {.terminal = ::isatty(STDERR_FILENO) == 1 && !dumb, .width = stderr_width, .clock = monotonic_seconds};
}

void RecentRate::add(double seconds, double amount) {
  steps_.push_back({seconds, amount});
  seconds_ += seconds;
  amount_ += amount;
  while (steps_.size() > 1 && seconds_ - steps_.front().seconds >= rate_seconds) {
    seconds_ -= steps_.front().seconds;
    amount_ -= steps_.front().amount;
    steps_.pop_front();
  }
}

double RecentRate::per_second() const { return seconds_ > 0.0 ? amount_ / seconds_ : 0.0; }

Progress::Progress(std::ostream& out, ProgressView view) : out_(out), view_(std::move(view)) {}

Progress::~Progress() {
  if (line_open_) out_ << '\n' << std::flush;
}

void Progress::start(const RunStart& run) {
  run_ = run;
  shown_at_ = view_.clock();
}

void Progress::step(const StepReport& report) {
  last_ = report;
  work_.add(report.seconds, static_cast<double>(run_.work.count(report.tokens)));
  flops_.add(report.seconds, report.flops);
  seconds_ += report.seconds;
  smoothed_loss_ = loss_memory * smoothed_loss_ + (1.0 - loss_memory) * report.loss;
  smoothing_weight_ = loss_memory * smoothing_weight_ + (1.0 - loss_memory);
  if (report.skipped) show_line(skipped_line(report));
  if (due()) show();
}

void Progress::evaluation(const EvaluationReport& report) {
  seconds_ += report.seconds;
  scores_ = scores_text(report.metrics);
  show_line(evaluation_line(report));
}

void Progress::checkpoint(const CheckpointReport& report) {
  seconds_ += report.seconds;
  show_line(checkpoint_line(report));
  if (!report.warning.empty()) show_line(checkpoint_warning(report));
}

/// Prints a line above the line that is refreshed.
void Progress::show_line(const std::string& line) {
  if (line_open_) out_ << clear_line;
  out_ << view_.speaker + without_controls(line) << std::flush;  // errors contain paths
  if (std::exchange(line_open_, false)) show();
}

void Progress::finish() {
  if (last_.step > 0 && shown_step_ != last_.step) show();
  if (std::exchange(line_open_, false)) out_ << '\n' << std::flush;
}

double Progress::fraction() const {
  return run_.steps > 0 ? static_cast<double>(last_.step) / static_cast<double>(run_.steps) : 0.0;
}

double Progress::seconds_left() const {
  const auto done = static_cast<double>(last_.step - run_.first_step);
  return done > 0.0 ? seconds_ / done * static_cast<double>(run_.steps - std::min(run_.steps, last_.step)) : 0.0;
}

bool Progress::due() const {
  if (shown_step_ == 0 || last_.step == run_.steps) return true;
  const double waited = view_.clock() - shown_at_;
  if (view_.terminal) return waited >= refresh_seconds;
  const bool far = (last_.step - shown_step_) * plain_lines >= run_.steps;
  return waited >= (far ? plain_at_least : plain_at_most);
}

void Progress::show() {
  if (view_.terminal) {
    out_ << clear_line << refreshed_line() << std::flush;
    line_open_ = true;
  } else {
    out_ << view_.speaker + plain_line() + "\n" << std::flush;  // in one write, beside the lines of other ranks
  }
  shown_at_ = view_.clock();
  shown_step_ = last_.step;
}

std::string Progress::loss_text() const { return fmt::format("loss {:.4f}", smoothed_loss_ / smoothing_weight_); }

std::string Progress::rate_text() const { return fmt::format("{:.0f} {}/s", work_.per_second(), run_.work.name); }

std::string Progress::share_text() const {
  if (view_.ceiling <= 0.0) return "";
  return fmt::format("{:.0f} % of GEMM", 100.0 * flops_.per_second() / view_.ceiling);
}

std::string Progress::left_text() const { return fmt::format("{} left", duration_text(seconds_left())); }

std::string Progress::plain_line() const {
  return joined({fmt::format("step {}/{} ({:.0f} %)", last_.step, run_.steps, 100.0 * fraction()),
                 fmt::format("epoch {:.2f}", last_.epoch), loss_text(), scores_, rate_text(), share_text(),
                 resident_text(last_), left_text()});
}

std::string Progress::refreshed_line() const {
  const std::size_t width = std::max<std::size_t>(view_.width(), 2) - 1;  // the last column may wrap
  const std::string percent = fmt::format("{:3.0f} %", std::floor(100.0 * fraction()));
  const std::string step = fmt::format("{}/{}", last_.step, run_.steps);
  const std::string loss = loss_text(), rate = rate_text(), share = share_text(), left = left_text();
  // Use the first that fits: a narrow window drops the least important parts.
  const std::vector<std::vector<std::string>> shorter = {{step, loss, scores_, rate, share, resident_text(last_), left},
                                                         {step, loss, scores_, rate, share, left},
                                                         {step, loss, scores_, rate, left},
                                                         {step, loss, rate, left},
                                                         {loss, rate, left},
                                                         {loss, left}};
  for (const std::vector<std::string>& parts : shorter) {
    const std::string details = joined(parts);
    const std::size_t taken = percent.size() + 2 + details.size();
    if (taken > width) continue;
    const std::size_t free = width - taken;
    if (free < narrowest_bar + 2) return joined({percent, details});
    return joined({percent, bar(fraction(), std::min(free - 2, widest_bar)), details});
  }
  return joined({percent, loss}).substr(0, width);
}

}  // namespace mylos::train
