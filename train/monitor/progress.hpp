#pragma once

#include "train/engine/report.hpp"

#include <deque>
#include <functional>
#include <iosfwd>
#include <string>

/// Shows the progress of a run to the user.
namespace mylos::train {

/// The output that progress is shown on.
struct ProgressView {
  bool terminal = false;               ///< true: one refreshed line; false: occasional lines, for a log
  std::function<std::size_t()> width;  ///< columns of the terminal, queried each time because windows are resized
  std::function<double()> clock;       ///< seconds since an arbitrary start
  std::string speaker = {};            ///< prefix of each line if several ranks print: "rank 3: "
  double ceiling = 0.0;                ///< operations per second of matrix products on all ranks; 0 = unknown
};

/// Returns the view for this process's stderr. TERM=dumb does not count as a terminal.
ProgressView stderr_view();

/// Work per second over the last seconds of training. Evaluations between steps do not count.
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

/// Shows step, loss (smoothed over about 20 steps), the first scores of the last evaluation, work per second (tokens,
/// images), the fraction of the rate of matrix products alone, memory and time left. Each evaluation, checkpoint and
/// skipped step gets its own line.
class Progress final : public Reporter {
 public:
  Progress(std::ostream& out, ProgressView view);
  /// Ends an open line, so that an error message starts on a new one.
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
  std::string scores_;  ///< scores of the last evaluation
  double smoothed_loss_ = 0.0, smoothing_weight_ = 0.0;
  double seconds_ = 0.0;  ///< seconds of steps and evaluations since the start
  double shown_at_ = 0.0;
  std::size_t shown_step_ = 0;  ///< 0: none shown yet
  bool line_open_ = false;
};

}  // namespace mylos::train
