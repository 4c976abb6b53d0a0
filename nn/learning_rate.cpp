#include "nn/learning_rate.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mylos::nn {

namespace {

constexpr double default_polynomial_end = 1e-7;

double cosine_fall(double progress) { return 0.5 * (1.0 + std::cos(std::numbers::pi * progress)); }

}  // namespace

const std::vector<ScheduleName>& schedule_names() {
  using enum ScheduleKind;
  static const std::vector<ScheduleName> names{
      {linear, "linear", {}},
      {constant, "constant", {"constant_with_warmup"}},
      {cosine, "cosine", {}},
      {step, "step", {}},
      {warmup_stable_decay, "warmup-stable-decay", {"warmup_stable_decay", "wsd"}},
      {polynomial, "polynomial", {}},
  };
  return names;
}

std::string schedule_list() {
  std::string list;
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    list += (i == 0 ? "" : i + 1 == schedule_names().size() ? " or " : ", ") + schedule_names()[i].name;
  }
  return list;
}

ScheduleKind parse_schedule(std::string_view name) {
  const auto found = std::ranges::find(schedule_names(), name, &ScheduleName::name);
  require(found != schedule_names().end(), fmt::format("{}: expected {}", setting("schedule", name), schedule_list()));
  return found->kind;
}

std::string_view to_string(ScheduleKind kind) {
  return std::ranges::find(schedule_names(), kind, &ScheduleName::kind)->name;
}

double LearningRateSchedule::at(std::size_t step) const {
  const double i = static_cast<double>(step), warmup = static_cast<double>(warmup_steps);
  if (step < warmup_steps) return peak * (i / warmup);
  if (kind == ScheduleKind::constant) return peak;
  if (kind == ScheduleKind::step) return decayed_at(step);
  const bool ends_above_zero = kind == ScheduleKind::polynomial && minimum == 0.0;
  const double end = ends_above_zero ? std::min(default_polynomial_end, peak) : minimum;
  if (step >= steps) return end;
  return end + (peak - end) * fall(static_cast<double>(steps) - i, static_cast<double>(steps) - warmup);
}

double LearningRateSchedule::fall(double left, double falling) const {
  switch (kind) {
    case ScheduleKind::polynomial:
      return std::pow(left / falling, decay_power);
    case ScheduleKind::cosine:
      return cosine_fall(1.0 - left / falling);
    case ScheduleKind::warmup_stable_decay: {
      const double decay = std::min(std::ceil(decay_fraction * static_cast<double>(steps)), falling);
      return left >= decay ? 1.0 : cosine_fall(1.0 - left / decay);
    }
    default:
      return left / falling;
  }
}

double LearningRateSchedule::decayed_at(std::size_t step) const {
  double rate = peak;
  for (const std::size_t decay_step : decay_steps) {
    if (decay_step <= step) rate *= decay_factor;
  }
  return std::max(rate, minimum);
}

}  // namespace mylos::nn
