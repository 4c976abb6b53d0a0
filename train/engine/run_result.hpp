#pragma once

#include "train/engine/task.hpp"

#include <cstddef>
#include <optional>

namespace mylos::train {

/// The outcome of a run.
struct RunResult {
  std::size_t steps = 0;          ///< completed steps
  std::size_t skipped = 0;        ///< steps skipped because of too large a loss scale, over all starts of the run
  int signal = 0;                 ///< signal that ended the run early, or 0
  bool stopped_early = false;     ///< patience ran out
  bool out_of_time = false;       ///< TrainConfig::stop_at was reached; `signal` is then SIGUSR1
  double training_seconds = 0.0;  ///< seconds of training steps, over all starts of the run
  double earlier_seconds = 0.0;   ///< part of `training_seconds` in earlier starts
  Metrics best;                   ///< metrics of the evaluation in best/
  std::optional<double> joules;   ///< energy used by the run's GPUs over all starts, if known; set by the caller
};

}  // namespace mylos::train
