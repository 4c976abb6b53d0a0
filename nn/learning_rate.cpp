#include "nn/learning_rate.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace mylos::nn {

ScheduleKind parse_schedule(std::string_view name) {
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::constant, ScheduleKind::cosine}) {
    if (to_string(kind) == name) return kind;
  }
  require(false, fmt::format("--schedule {}: there are linear, constant and cosine", name));
  return ScheduleKind::linear;
}

std::string_view to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::linear:
      break;
  }
  return "linear";
}

double LearningRateSchedule::at(std::size_t step) const {
  const double i = static_cast<double>(step), warmup = static_cast<double>(warmup_steps);
  if (step < warmup_steps) return peak * (i / warmup);
  if (kind == ScheduleKind::constant) return peak;
  if (step >= steps) return 0.0;
  const double left = (static_cast<double>(steps) - i) / (static_cast<double>(steps) - warmup);
  if (kind == ScheduleKind::linear) return peak * left;
  return peak * 0.5 * (1.0 + std::cos(std::numbers::pi * (1.0 - left)));
}

}  // namespace mylos::nn
