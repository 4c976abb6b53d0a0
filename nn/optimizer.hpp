#pragma once

#include "core/parameter_store.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

/// Updates of parameters from gradients, on the slices a rank owns.
namespace mylos::nn {

/// What changes from step to step.
struct UpdateSettings {
  std::size_t step = 0;  ///< updates that were made before
  float learning_rate = 0.0f;
  float gradient_scale = 1.0f;  ///< gradients are multiplied by it: clipping, and what undoes a loss scale
};

/// Holds its slots (float, one per slice) for the slices it was made for.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Names of the slots, as checkpoints have them: "m" and "v" for AdamW.
  virtual std::vector<std::string> slot_names() const = 0;
  /// Slot `slot` of slice `slice`, elements as in the slice.
  virtual Vector<float> slot(std::size_t slot, std::size_t slice) const = 0;
  /// Updates the master weights of all slices; tensors that are not trainable stay.
  virtual void update(const ExecutionSpace& space, const UpdateSettings& settings) = 0;
  /// Undoes in the master weights, up to rounding, the last update, which was made with `settings`. The slots stay: a
  /// run ends with this. Returns false, and changes nothing, where the slots do not determine the update: with Nesterov
  /// momentum.
  virtual bool revert(const ExecutionSpace& space, const UpdateSettings& settings) = 0;
};

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< of tensors whose group decays
  bool decay_all = false;     ///< every trainable tensor decays, whatever its group
};
/// AdamW with bias correction. `table` and the slices' memory outlive it.
std::unique_ptr<Optimizer> make_adamw(const AdamWConfig& config, const ParameterTable& table,
                                      std::span<const ParameterSlice> slices);

struct SgdConfig {
  double momentum = 0.9;
  double weight_decay = 0.0;  ///< added to the gradient, of tensors whose group decays
  bool nesterov = false;
  bool decay_all = false;  ///< every trainable tensor decays, whatever its group
};
/// SGD with momentum as torch.optim.SGD, dampening 0. `table` and the slices' memory outlive it.
std::unique_ptr<Optimizer> make_sgd(const SgdConfig& config, const ParameterTable& table,
                                    std::span<const ParameterSlice> slices);

/// The norm of the gradients of all trainable tensors. Squares are summed in double over blocks of `norm_block`
/// elements of a unit, where slices begin: the block sums are the same bits for any number of ranks.
class GradientNorm {
 public:
  GradientNorm(const ParameterTable& table, std::span<const ParameterSlice> slices);
  /// The sum of squares of every block of every slice, in their order; zero where nothing is trained. Valid until the
  /// next call.
  std::span<const double> block_sums(const ExecutionSpace& space) const;

 private:
  /// The trainable part of a slice.
  struct Part {
    std::size_t begin = 0;  ///< of the unit's elements
    Vector<float> gradient;
    Vector<double> sums;
  };

  std::vector<Part> parts_;
  Vector<double> sums_;
  HostVector<double> host_sums_;
};

}  // namespace mylos::nn
