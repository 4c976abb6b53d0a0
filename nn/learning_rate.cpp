#include "nn/learning_rate.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mylos::nn {

ScheduleKind parse_schedule(std::string_view name) {
  using enum ScheduleKind;
  for (const ScheduleKind kind : {linear, constant, cosine, step}) {
    if (to_string(kind) == name) return kind;
  }
  require(false, fmt::format("{}: expected linear, constant, cosine or step", setting("schedule", name)));
  return ScheduleKind::linear;
}

std::string_view to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::step:
      return "step";
    case ScheduleKind::linear:
      break;
  }
  return "linear";
}

double LearningRateSchedule::at(std::size_t step) const {
  const double i = static_cast<double>(step), warmup = static_cast<double>(warmup_steps);
  if (step < warmup_steps) return peak * (i / warmup);
  if (kind == ScheduleKind::constant) return peak;
  if (kind == ScheduleKind::step) return decayed_at(step);
  if (step >= steps) return minimum;
  const double left = (static_cast<double>(steps) - i) / (static_cast<double>(steps) - warmup);
  if (kind == ScheduleKind::linear) return minimum + (peak - minimum) * left;
  return minimum + (peak - minimum) * 0.5 * (1.0 + std::cos(std::numbers::pi * (1.0 - left)));
}

double LearningRateSchedule::decayed_at(std::size_t step) const {
  double rate = peak;
  for (const std::size_t decay_step : decay_steps) {
    if (decay_step <= step) rate *= decay_factor;
  }
  return std::max(rate, minimum);
}

}  // namespace mylos::nn
