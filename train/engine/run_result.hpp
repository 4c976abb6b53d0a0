#pragma once

#include "train/engine/task.hpp"

#include <cstddef>
#include <optional>

namespace mylos::train {

/// How a run ended.
struct RunResult {
  std::size_t steps = 0;          ///< done
  std::size_t skipped = 0;        ///< of them, where the loss scale was too large; over all starts of the run
  int signal = 0;                 ///< that ended it early, or 0
  bool stopped_early = false;     ///< patience ran out
  bool out_of_time = false;       ///< TrainConfig::stop_at came; `signal` is then SIGUSR1
  double training_seconds = 0.0;  ///< steps only, over all starts of the run
  double earlier_seconds = 0.0;   ///< of them, those of earlier starts
  Metrics best;                   ///< of the evaluation that is in best/
  std::optional<double> joules;   ///< that its GPUs used over all starts, where that is known; the caller's to say
};

}  // namespace mylos::train
