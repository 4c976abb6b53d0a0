#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

/// The learning rate as a function of the step alone.
namespace mylos::nn {

enum class ScheduleKind { linear, constant, cosine, step };

/// Parses "linear", "constant", "cosine" or "step". Errors: std::invalid_argument, which lists these names.
ScheduleKind parse_schedule(std::string_view name);
std::string_view to_string(ScheduleKind kind);

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  double peak = 3e-5;
  std::size_t steps = 1;                      ///< T, steps of the whole run
  std::size_t warmup_steps = 0;               ///< W
  double minimum = 0.0;                       ///< lower bound after warm-up; at most the peak
  std::vector<std::size_t> decay_steps = {};  ///< for `step`: ascending, from the start of the run, e.g. {100, 200}
  double decay_factor = 0.1;                  ///< for `step`

  /// Returns the learning rate of step i, counted from 0. In warm-up it is peak i / W. After that:
  /// - linear: minimum + (peak - minimum) (T - i) / (T - W);
  /// - cosine: half a period from the peak to the minimum;
  /// - constant: the peak;
  /// - step: the peak times decay_factor for each element of decay_steps that is at most i, as in
  ///   torch.optim.lr_scheduler.MultiStepLR, but at least the minimum.
  double at(std::size_t step) const;

 private:
  double decayed_at(std::size_t step) const;
};

}  // namespace mylos::nn
