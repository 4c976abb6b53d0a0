#pragma once

#include <optional>
#include <string_view>

/// What a backward pass computes again instead of having kept it: memory for time, without a change of any number.
/// Dropout is drawn from counters, so that a unit's second forward pass has the bits of its first.
namespace mylos::nn {

enum class Recompute {
  none,       ///< every unit keeps what its backward pass reads
  attention,  ///< what attention reads is made again from its input
  layer,      ///< a unit keeps its input, and runs forward a second time
};

/// "none", "attention" or "layer", and back; nothing for any other name.
std::string_view to_string(Recompute recompute);
std::optional<Recompute> parse_recompute(std::string_view name);

}  // namespace mylos::nn
