#include "train/engine/loop/loss_scale.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::train {

bool is_loss_scale(double scale) {
  int exponent = 0;
  return scale >= LossScale::least && scale <= LossScale::largest && std::frexp(scale, &exponent) == 0.5;
}

LossScale::LossScale(double scale, std::size_t finite_steps)
    : adapts_(true), value_(scale), finite_steps_(finite_steps) {
  require(is_loss_scale(scale),
          fmt::format("loss scale {}: not a power of two from {} to {}", scale, LossScale::least, LossScale::largest));
}

void LossScale::note_finite() {
  if (!adapts_ || ++finite_steps_ < steps_to_grow) return;
  value_ = std::min(2.0 * value_, largest);
  finite_steps_ = 0;
}

bool LossScale::back_off() {
  if (!adapts_ || value_ == least) return false;
  value_ *= 0.5;
  finite_steps_ = 0;
  return true;
}

LossScale first_loss_scale(Precision precision, double initial) {
  return precision == Precision::float16 ? LossScale(initial) : LossScale();
}

}  // namespace mylos::train
