#include "train/engine/train_config.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mylos::train {

nn::LearningRateSchedule learning_rate_schedule(const TrainConfig& config, std::size_t steps) {
  const auto ratio_steps = static_cast<std::size_t>(std::ceil(config.warmup_ratio * static_cast<double>(steps)));
  return {.kind = config.schedule,
          .peak = config.learning_rate,
          .steps = steps,
          .warmup_steps = config.warmup_steps.value_or(0) > 0 ? *config.warmup_steps : ratio_steps,
          .minimum = config.learning_rate_min,
          .decay_steps = config.decay_steps,
          .decay_factor = config.decay_factor,
          .decay_fraction = config.decay_fraction,
          .decay_power = config.decay_power};
}

std::string TrainConfig::output_loss() const {
  const std::string loss = lock == nullptr ? std::string() : lock->loss();
  if (loss.empty()) return {};
  return fmt::format("{} belongs to this run no longer: {}", setting("output", output.string()), loss);
}

void TrainConfig::check_output() const {
  if (const std::string loss = output_loss(); !loss.empty()) fail(loss);
}

}  // namespace mylos::train
