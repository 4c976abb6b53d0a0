#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"
#include "core/parameters.hpp"

#include <cstdint>

/// Optimizer updates over flat slices, in one pass each, and the norm for gradient clipping. Updates are elementwise,
/// so results do not depend on how a unit is cut into slices.
namespace mylos {

/// Scale and skip decision of an update. They are computed and read on the device, so the host does not wait for them.
/// No member is a float, so compilers can assume that writing float weights does not change them.
struct UpdateControl {
  double gradient_scale = 1.0;  ///< factor on the gradients, which clips and undoes the loss scale; a float value
  std::int64_t skips = 0;       ///< if not 0, the update changes nothing
};

struct DecisionSettings {
  double clip = 0.0;        ///< maximum gradient norm; 0: no clipping
  double loss_scale = 1.0;  ///< factor by which the gradient is scaled
  double weight = 1.0;      ///< divisor of the sum of losses
};
/// Computes control (1) of an update from squares (1), the sum of the squares of the gradient, and from the losses.
/// Skips the update if the gradient norm, or the sum of the losses divided by their weight, is not finite.
void decide_update(const ExecutionSpace& space, const DecisionSettings& settings, const ConstVector<double>& squares,
                   const ConstVector<double>& losses, const Vector<UpdateControl>& control);

/// An array of 16-bit elements to which an update also writes the updated values; none if `values` is null.
struct RoundedValues {
  void* values = nullptr;
  Precision precision = Precision::bfloat16;
};

/// Loshchilov, Hutter 2019, with bias correction: w -= learning_rate (m^ / (sqrt(v^) + epsilon) + weight_decay w).
struct AdamWSettings {
  float learning_rate = 0.0f;
  double beta1 = 0.9, beta2 = 0.999;  ///< double because 1 - 0.999 in float has a relative error of 1e-5
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  double bias_correction1 = 1.0, bias_correction2 = 1.0;  ///< 1 - beta^step
};
void adamw_update(const ExecutionSpace& space, const AdamWSettings& settings, const ConstVector<UpdateControl>& control,
                  const ConstVector<float>& gradient, const Vector<float>& value, const Vector<float>& first_moment,
                  const Vector<float>& second_moment, const RoundedValues& rounded = {});

/// Undoes the last update, which computed these moments. The error is at most the rounding error of the larger of the
/// weights before and after the update. A weight that decay set to zero (learning_rate * weight_decay >= 1) is not
/// restored.
void adamw_revert(const ExecutionSpace& space, const AdamWSettings& settings, const ConstVector<float>& first_moment,
                  const ConstVector<float>& second_moment, const Vector<float>& value);

/// Polyak's heavy ball as in PyTorch: d = g + weight_decay w; b = momentum b + d; w -= learning_rate b. Nesterov
/// momentum (Sutskever et al. 2013, in PyTorch's form): w -= learning_rate (d + momentum b).
struct SgdSettings {
  float learning_rate = 0.0f;
  float momentum = 0.9f, weight_decay = 0.0f;
  bool nesterov = false;
};
void sgd_update(const ExecutionSpace& space, const SgdSettings& settings, const ConstVector<UpdateControl>& control,
                const ConstVector<float>& gradient, const Vector<float>& value, const Vector<float>& momentum,
                const RoundedValues& rounded = {});

/// Undoes the last update, which computed this momentum, up to rounding. Errors: std::invalid_argument with Nesterov
/// momentum. Its updates contain the gradient, which cannot be computed from the momentum alone.
void sgd_revert(const ExecutionSpace& space, const SgdSettings& settings, const ConstVector<float>& momentum,
                const Vector<float>& value);

/// Elements per block of `block_squared_sums`.
inline constexpr std::size_t norm_block = slice_block;

/// Number of blocks that contain the elements [begin, end) of a unit; block b is [b * norm_block, (b + 1) *
/// norm_block).
inline std::size_t norm_blocks(std::size_t begin, std::size_t end) {
  return begin < end ? (end - 1) / norm_block - begin / norm_block + 1 : 0;
}

/// sums (norm_blocks) = sum of squares per block, in double. The elements of x are [begin, begin + size) of a unit. The
/// sum of a block that lies within one x has the same bits however the unit is cut.
void block_squared_sums(const ExecutionSpace& space, const ConstVector<float>& x, std::size_t begin,
                        const Vector<double>& sums);

/// sum (1) = the sum of the values, in the same order in every run. A host adds them one after the other; a device uses
/// the order of team_sum.
void sum_in_order(const ExecutionSpace& space, const ConstVector<double>& values, const Vector<double>& sum);

}  // namespace mylos
