#pragma once

#include <chrono>
#include <optional>

/// Where the time of a step goes, as far as it can be told without waiting for a device where nothing else does.
namespace mylos::train {

/// Seconds of a step in which this rank did this and nothing else. What is left of the step are the forward and the
/// backward pass and the norm of the gradient.
struct StepParts {
  double data = 0.0;  ///< making batches; of a device build the first step's, for which its kernels wait
  std::optional<double> exchange = {};  ///< waiting for other ranks; a device build does not know
  double update = 0.0;                  ///< the optimizer, and values for the next step; without those of `exchange`
};

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace mylos::train
