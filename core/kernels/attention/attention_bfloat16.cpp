#include "core/kernels/attention/attention_bfloat16.hpp"

#include "core/base/error.hpp"
#include "core/kernels/attention/pair_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::attention {
namespace {

Bfloat16Operands& chosen() {
  static Bfloat16Operands operands = supported_bfloat16_operands().front();
  return operands;
}

}  // namespace

std::string_view to_string(Bfloat16Operands operands) {
  switch (operands) {
    case Bfloat16Operands::floats:
      return "floats";
    case Bfloat16Operands::pairs:
      return "pairs";
    case Bfloat16Operands::tiles:
      return "tiles";
  }
  return "";
}

std::vector<Bfloat16Operands> supported_bfloat16_operands() {
#if defined(MYLOS_MULTIPLIES_PAIRS)
  if constexpr (multiplies_pairs) {
    using enum Bfloat16Operands;
    if (has_pair_tiles()) return {tiles, pairs, floats};
#if defined(__x86_64__)
    if (!__builtin_cpu_is("amd")) return {floats, pairs};
#endif
    return {pairs, floats};
  }
#endif
  return {Bfloat16Operands::floats};
}

Bfloat16Operands bfloat16_operands() { return chosen(); }

ScopedBfloat16Operands::ScopedBfloat16Operands(Bfloat16Operands operands) : before_(chosen()) {
  const std::vector<Bfloat16Operands> supported = supported_bfloat16_operands();
  require(std::ranges::find(supported, operands) != supported.end(),
          fmt::format("attention: this build has no {} of bfloat16 on this CPU", to_string(operands)));
  chosen() = operands;
}

ScopedBfloat16Operands::~ScopedBfloat16Operands() { chosen() = before_; }

}  // namespace mylos::attention
