#pragma once

#include "train/engine/loop/run_setup.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// Ends a run whose loss, gradients or outputs are no longer finite.
namespace mylos::train {

/// The last parameter update, which can be undone.
struct LastUpdate {
  std::size_t step = 0;  ///< the step that made it, from 0
  nn::UpdateSettings settings;
};

struct Divergence {
  std::string what;                    ///< description of the failure: "step 3: loss nan, gradient norm nan"
  std::size_t step = 0;                ///< the step that would start from the current weights, from 0
  std::optional<LastUpdate> spoilt{};  ///< the update that spoilt the weights; nullopt if the current weights are good
  bool keeps_weights = true;           ///< false if the weights are spoilt and the responsible update is unknown
  std::string checkpoint{};            ///< empty, or the fate of the checkpoint that holds the current weights
};

/// Ends the run with an error that names the values that are not finite and suggests a remedy. If the run has an output
/// directory, first undoes the update that spoilt the weights and, if they are finite then, exports them as last/.
/// Collective: all ranks must pass the same divergence, and all throw the same error.
[[noreturn]] void stop_diverged(const RunSetup& run, const Divergence& divergence);

}  // namespace mylos::train
