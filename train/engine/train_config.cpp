#include "train/engine/train_config.hpp"

#include <cmath>

namespace mylos::train {

nn::LearningRateSchedule learning_rate_schedule(const TrainConfig& config, std::size_t steps) {
  const auto ratio_steps = static_cast<std::size_t>(std::ceil(config.warmup_ratio * static_cast<double>(steps)));
  return {config.schedule, config.learning_rate, steps,
          config.warmup_steps.value_or(0) > 0 ? *config.warmup_steps : ratio_steps};
}

}  // namespace mylos::train
