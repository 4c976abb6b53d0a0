#include "nn/recompute.hpp"

#include <array>

namespace mylos::nn {

std::string_view to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::attention:
      return "attention";
    case Recompute::layer:
      return "layer";
    case Recompute::none:
      break;
  }
  return "none";
}

std::optional<Recompute> parse_recompute(std::string_view name) {
  for (const Recompute recompute : std::array{Recompute::none, Recompute::attention, Recompute::layer}) {
    if (name == to_string(recompute)) return recompute;
  }
  return std::nullopt;
}

}  // namespace mylos::nn
