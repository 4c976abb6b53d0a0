#include "tasks/language_modeling/gpt_shapes.hpp"

#include <algorithm>
#include <array>

namespace mylos::tasks {
namespace {

nn::GptShape decoder(std::size_t hidden, std::size_t layers, std::size_t heads) {
  constexpr std::size_t vocabulary = 50368, positions = 65536;  // ALiBi has no limit
  return {vocabulary, hidden, layers, heads, 4 * hidden, positions};
}

}  // namespace

std::span<const NamedGpt> gpt_shapes() {
  static const std::array shapes = {
      NamedGpt{"mpt-1b", decoder(2048, 24, 16)},  NamedGpt{"mpt-3b", decoder(2560, 32, 20)},
      NamedGpt{"mpt-7b", decoder(4096, 32, 32)},  NamedGpt{"mpt-13b", decoder(5120, 40, 40)},
      NamedGpt{"mpt-30b", decoder(7168, 48, 56)}, NamedGpt{"mpt-70b", decoder(8192, 80, 64)}};
  return shapes;
}

const NamedGpt* find_gpt_shape(std::string_view name) {
  const auto found = std::ranges::find(gpt_shapes(), name, &NamedGpt::name);
  return found == gpt_shapes().end() ? nullptr : &*found;
}

}  // namespace mylos::tasks
