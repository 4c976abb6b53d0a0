#pragma once

#include "train/engine/report.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Adds up the time of a start of a run by action, for the table that --profile prints at the end.
namespace mylos::train {

class Profile final : public Reporter {
 public:
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override { evaluations_.add(report.seconds); }
  void checkpoint(const CheckpointReport& report) override { checkpoints_.add(report.seconds); }

  /// Returns a line for each action with its calls, the mean and total seconds, and the share of `seconds`, the time
  /// from the beginning of the program. Actions of a step are indented. What no action covers is the start, the data,
  /// the exports and the end.
  std::string table(double seconds) const;

 private:
  struct Action {
    void add(double seconds) {
      total += seconds;
      ++calls;
    }
    double total = 0.0;
    std::size_t calls = 0;
  };

  Action steps_, data_, exchanges_, updates_, evaluations_, checkpoints_;
};

}  // namespace mylos::train
