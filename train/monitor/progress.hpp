#pragma once

#include "train/engine/report.hpp"

#include <deque>
#include <functional>
#include <iosfwd>
#include <string>

/// What a person sees of a run while it goes on.
namespace mylos::train {

/// Where progress is shown, and when.
struct ProgressView {
  bool terminal = false;               ///< one line that is refreshed; otherwise lines from time to time, for a log
  std::function<std::size_t()> width;  ///< columns of the terminal, asked each time because windows are resized
  std::function<double()> clock;       ///< seconds, from any beginning
  std::string speaker = {};            ///< begins each line, where several ranks speak: "rank 3: "
  double ceiling = 0.0;                ///< operations a second of matrix products on all ranks; 0 = not known
};

/// Of this process' stderr. TERM=dumb counts as no terminal.
ProgressView stderr_view();

/// What is done a second over the last seconds of training: evaluations between steps do not count.
class RecentRate {
 public:
  void add(double seconds, double amount);
  double per_second() const;

 private:
  struct Step {
    double seconds, amount;
  };
  std::deque<Step> steps_;
  double seconds_ = 0.0, amount_ = 0.0;
};

/// Shows step, loss (smoothed over about 20 steps), the last evaluation's first scores, work per second (tokens,
/// images), the share of what matrix products alone would reach, memory and time left; each evaluation, each checkpoint
/// and each skipped step on a line of its own.
class Progress final : public Reporter {
 public:
  Progress(std::ostream& out, ProgressView view);
  /// Ends a line that is open, so that an error stands on its own.
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start(const RunStart& run) override;
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;
  void checkpoint(const CheckpointReport& report) override;
  void finish() override;

 private:
  double fraction() const;
  double seconds_left() const;
  std::string refreshed_line() const;
  std::string plain_line() const;
  std::string loss_text() const;
  std::string rate_text() const;
  std::string share_text() const;
  std::string left_text() const;
  bool due() const;
  void show();
  void show_line(const std::string& line);

  std::ostream& out_;
  ProgressView view_;
  RunStart run_;
  StepReport last_;
  RecentRate work_, flops_;
  std::string scores_;  ///< of the last evaluation
  double smoothed_loss_ = 0.0, smoothing_weight_ = 0.0;
  double seconds_ = 0.0;  ///< of steps and evaluations since the start
  double shown_at_ = 0.0;
  std::size_t shown_step_ = 0;  ///< 0: none yet
  bool line_open_ = false;
};

}  // namespace mylos::train
