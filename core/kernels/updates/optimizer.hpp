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
  std::int64_t after_skip = 0;  ///< if not 0, the update before was skipped
  std::int64_t stopped = 0;     ///< if not 0, this update and all later ones are skipped
};

/// A setting that depends on whether the last update was skipped. The host launches a step before it knows this, so the
/// device selects one of two candidates.
template <class T>
struct Candidates {
  /// The same value in both cases. Implicit, so that a setting which the host knows can be passed as it is.
  Candidates(const T& known = {}) : after_update(known), after_skip(known) {}
  Candidates(const T& updated, const T& skipped) : after_update(updated), after_skip(skipped) {}

  /// Returns the candidates f(after_update) and f(after_skip).
  template <class F>
  auto map(const F& f) const {
    return Candidates<decltype(f(after_update))>(f(after_update), f(after_skip));
  }
  KOKKOS_FORCEINLINE_FUNCTION const T& select(bool is_after_skip) const {
    return is_after_skip ? after_skip : after_update;
  }

  T after_update;
  T after_skip;
};

/// loss_scale (1) = the candidate that control (1) of the last update selects.
void select_loss_scale(const ExecutionSpace& space, const Candidates<float>& candidates,
                       const ConstVector<UpdateControl>& control, const Vector<float>& loss_scale);

struct DecisionSettings {
  double clip = 0.0;              ///< maximum gradient norm; 0: no clipping
  double weight = 1.0;            ///< divisor of the sum of losses
  double least_loss_scale = 1.0;  ///< a gradient that is not finite with this loss scale stops all later updates
};
/// Computes control (1) of an update from squares (1), the sum of the squares of the gradient multiplied by loss_scale
/// (1), from the losses, and from the last update's control, which it replaces. Skips the update if the gradient norm,
/// or the sum of the losses divided by their weight, is not finite. Stops it and all later ones unless a smaller loss
/// scale can make it finite: the sum of the losses does not depend on the scale.
void decide_update(const ExecutionSpace& space, const DecisionSettings& settings, const ConstVector<float>& loss_scale,
                   const ConstVector<double>& squares, const ConstVector<double>& losses,
                   const Vector<UpdateControl>& control);

/// An array of 16-bit elements to which an update also writes the updated values; none if `values` is null.
struct RoundedValues {
  void* values = nullptr;
  Precision precision = Precision::bfloat16;
};

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

/// sum (1) = the sum of the values, in the same order in every run. A host adds them one after the other; a team
/// on a device adds in an order that depends on their number.
void sum_in_order(const ExecutionSpace& space, const ConstVector<double>& values, const Vector<double>& sum);

}  // namespace mylos
