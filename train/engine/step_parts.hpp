#pragma once

#include <optional>

/// Breaks down the time of a step, without adding waits for a device.
namespace mylos::train {

/// Seconds of a step that this rank spent exclusively in each part. The rest of the step is the forward pass, the
/// backward pass and the norm of the gradient.
struct StepParts {
  double data = 0.0;  ///< making batches; in a device build only for the first step, whose kernels wait for it
  std::optional<double> exchange = {};  ///< waiting for other ranks; nullopt in a device build
  /// The optimizer, and the synchronisation of the model's values after the previous update, without the waits in
  /// `exchange`. nullopt in a device build, where both run during the next step.
  std::optional<double> update = {};
};

}  // namespace mylos::train
