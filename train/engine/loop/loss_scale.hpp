#pragma once

#include "core/base/precision.hpp"

#include <cstddef>

/// The loss scale: losses are multiplied by it before the backward pass, so that activation gradients stay within
/// half's range of 2^-24 to 65504 (Micikevicius et al., 2018). It adapts as PyTorch's GradScaler does.
namespace mylos::train {

class LossScale {
 public:
  static constexpr double least = 1.0, largest = 0x1p24;
  static constexpr std::size_t steps_to_grow = 2000;

  /// Constantly 1, for types with float's range.
  LossScale() = default;
  /// Adapts, starting from `scale` after `finite_steps` consecutive steps with finite gradients. Errors:
  /// std::invalid_argument if the scale is not a power of two within the bounds.
  explicit LossScale(double scale, std::size_t finite_steps = 0);

  bool adapts() const { return adapts_; }
  /// Returns the scale, a power of two, so that scaling gradients up and down is exact.
  double value() const { return value_; }
  /// Returns the steps with finite gradients since the scale last changed.
  std::size_t finite_steps() const { return finite_steps_; }

  /// Records a step with finite gradients. The scale doubles after `steps_to_grow` of them.
  void note_finite();
  /// Records a step with gradients that are not finite: halves the scale. Returns false and changes nothing if the
  /// scale is constant or already the least.
  bool back_off();

 private:
  bool adapts_ = false;
  double value_ = 1.0;
  std::size_t finite_steps_ = 0;
};

/// Returns whether `scale` is a valid scale.
bool is_loss_scale(double scale);

/// Returns the scale that a run in `precision` starts with; only half adapts it.
LossScale first_loss_scale(Precision precision, double initial);

}  // namespace mylos::train
