#pragma once

#include <optional>
#include <string_view>

/// Activation recomputation (checkpointing): the backward pass recomputes activations instead of keeping them. This
/// trades time for memory and changes no result: dropout is drawn from counters, so a unit's second forward pass has
/// the same bits as its first.
namespace mylos::nn {

enum class Recompute {
  none,       ///< each unit keeps all activations that its backward pass reads
  attention,  ///< the inputs of attention (queries, keys, values) are recomputed
  layer,      ///< each unit keeps only its input and runs its forward pass again
};

/// "none", "attention" or "layer". Parsing returns nullopt for any other name.
std::string_view to_string(Recompute recompute);
std::optional<Recompute> parse_recompute(std::string_view name);

}  // namespace mylos::nn
