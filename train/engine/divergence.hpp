#pragma once

#include "train/engine/run_parts.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// The end of a run whose numbers are not finite any more.
namespace mylos::train {

/// The last update of the parameters, which can be taken back.
struct LastUpdate {
  std::size_t step = 0;  ///< from 0: the step that made it
  nn::UpdateSettings settings;
};

struct Divergence {
  std::string what;                    ///< "step 3: loss nan, gradient norm nan": what is not finite, and where
  std::size_t step = 0;                ///< from 0: the step that would begin with the present weights
  std::optional<LastUpdate> spoilt{};  ///< the update after which it was so; nullopt where the present weights are good
  bool keeps_weights = true;           ///< false where the present weights are spoilt and by which update is not known
  std::string checkpoint{};            ///< empty, or what becomes of the checkpoint that holds the present weights
};

/// Ends the run with an error that says what is not finite and what to change. Before that, where the run has an output
/// directory, takes the update that spoilt the weights back and exports them as last/, where they are finite then.
/// Collective: every rank comes with the same divergence, and has the same error.
[[noreturn]] void stop_diverged(const RunParts& run, const Divergence& divergence);

}  // namespace mylos::train
