#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

/// The learning rate as a function of the step alone.
namespace mylos::nn {

enum class ScheduleKind { linear, constant, cosine, step };

/// "linear", "constant", "cosine" or "step". Errors: std::invalid_argument listing them.
ScheduleKind parse_schedule(std::string_view name);
std::string_view to_string(ScheduleKind kind);

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  double peak = 3e-5;
  std::size_t steps = 1;                      ///< T, of the whole run
  std::size_t warmup_steps = 0;               ///< W
  double minimum = 0.0;                       ///< no rate after warm-up is below it; at most the peak
  std::vector<std::size_t> decay_steps = {};  ///< of step: ascending, counted from the run's begin, e.g. {100, 200}
  double decay_factor = 0.1;                  ///< of step

  /// At step i, counted from 0: peak i / W in warm-up; then linear: minimum + (peak - minimum) (T - i) / (T - W);
  /// cosine: half a period from the peak to the minimum; constant: peak; step: peak times decay_factor for each of
  /// decay_steps that is at most i, as torch.optim.lr_scheduler.MultiStepLR, but not below the minimum.
  double at(std::size_t step) const;

 private:
  double decayed_at(std::size_t step) const;
};

}  // namespace mylos::nn
