#pragma once

#include "core/numeric.hpp"

#include <cstddef>

/// What losses are multiplied by before the backward pass, so that gradients of activations stay within half's range:
/// 2^-24 to 65504 (Micikevicius and others, 2018). It adapts as PyTorch's GradScaler does.
namespace mylos::train {

class LossScale {
 public:
  static constexpr double least = 1.0, largest = 0x1p24;
  static constexpr std::size_t steps_to_grow = 2000;

  /// 1 for ever: of types with float's range.
  LossScale() = default;
  /// Adapts, from `scale` after `finite_steps` steps in a row with finite gradients. Errors: std::invalid_argument
  /// where the scale is no power of two within the bounds.
  explicit LossScale(double scale, std::size_t finite_steps = 0);

  bool adapts() const { return adapts_; }
  /// A power of two: gradients are multiplied by it, and divided, without rounding.
  double value() const { return value_; }
  /// Since the scale last changed.
  std::size_t finite_steps() const { return finite_steps_; }

  /// A step's gradients were finite: the scale doubles after `steps_to_grow` of them.
  void note_finite();
  /// A step's gradients were not finite: the scale is halved. False, with nothing changed, where it cannot be.
  bool back_off();

 private:
  bool adapts_ = false;
  double value_ = 1.0;
  std::size_t finite_steps_ = 0;
};

/// Whether a scale can have this value.
bool is_loss_scale(double scale);

/// Of a run that computes in `precision`: only half needs one.
LossScale first_loss_scale(Precision precision, double initial);

}  // namespace mylos::train
