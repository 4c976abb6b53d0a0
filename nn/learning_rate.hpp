#pragma once

#include <cstddef>
#include <string_view>

/// The learning rate as a function of the step alone.
namespace mylos::nn {

enum class ScheduleKind { linear, constant, cosine };

/// "linear", "constant" or "cosine". Errors: std::invalid_argument listing them.
ScheduleKind parse_schedule(std::string_view name);
std::string_view to_string(ScheduleKind kind);

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  double peak = 3e-5;
  std::size_t steps = 1;         ///< T, of the whole run
  std::size_t warmup_steps = 0;  ///< W

  /// At step i, counted from 0: peak i / W in warm-up; then linear: peak (T - i) / (T - W); cosine: half a period;
  /// constant: peak.
  double at(std::size_t step) const;
};

}  // namespace mylos::nn
