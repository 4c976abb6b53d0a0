#pragma once

#include "core/kernels/updates/optimizer.hpp"
#include "core/parameter_store.hpp"
#include "nn/optimizer_config.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Parameter updates from gradients, on the slices that a rank owns.
namespace mylos::nn {

/// Settings that change from step to step.
struct UpdateSettings {
  std::size_t step = 0;  ///< number of previous updates
  float learning_rate = 0.0f;
};

/// An optimizer for a fixed list of slices. It holds its state in slots, one float vector per slice and slot.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Names of the slots in checkpoints: "m" and "v" for AdamW.
  virtual const std::vector<std::string>& slot_names() const = 0;
  /// Slot `slot` of slice `slice`, with the slice's elements in order.
  virtual Vector<float> slot(std::size_t slot, std::size_t slice) const = 0;
  /// Updates the master weights of all slices and their rounded copies, except tensors that are not trainable. Scales
  /// the gradient, selects the settings, and skips the update, as `control` (1) says on the device.
  virtual void update(const ExecutionSpace& space, const Candidates<UpdateSettings>& settings,
                      const ConstVector<UpdateControl>& control) = 0;
  /// Undoes the last update, made with `settings`, in the master weights, up to rounding. The slots are not restored,
  /// so this must be the last call of a run. Returns an empty text; or, if the slots do not determine the update,
  /// changes nothing and returns which updates those are: "with Nesterov momentum".
  virtual std::string_view revert(const ExecutionSpace& space, const UpdateSettings& settings) = 0;
};

/// Sums of squares for the gradient norm of all trainable tensors. They are computed in double over blocks of
/// `norm_block` elements of a unit. Slices begin at block boundaries, so the block sums have the same bits for any
/// number of ranks.
class GradientNorm {
 public:
  GradientNorm(const ParameterTable& table, std::span<const ParameterSlice> slices);
  /// Computes the sum of squares of each block of each slice, in order; zero for blocks without trainable elements.
  /// The result is valid until the next call.
  ConstVector<double> block_sums(const ExecutionSpace& space) const;

 private:
  /// The trainable part of a slice.
  struct Part {
    std::size_t begin = 0;  ///< first element within the unit
    Vector<float> gradient;
    Vector<double> sums;
  };

  std::vector<Part> parts_;
  Vector<double> sums_;
};

}  // namespace mylos::nn
