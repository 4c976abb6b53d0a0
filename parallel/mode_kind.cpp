#include "parallel/parameter_mode.hpp"

#include <array>
#include <utility>

namespace mylos::parallel {
namespace {

constexpr std::array<std::pair<ModeKind, std::string_view>, 5> names = {{
    {ModeKind::replicated, "replicated"},
    {ModeKind::sharded_optimizer, "sharded-optimizer"},
    {ModeKind::sharded_gradients, "sharded-gradients"},
    {ModeKind::sharded, "sharded"},
    {ModeKind::hybrid, "hybrid"},
}};

}  // namespace

std::string_view to_string(ModeKind kind) {
  for (const auto& [known, name] : names) {
    if (known == kind) return name;
  }
  return "";
}

std::optional<ModeKind> parse_mode(std::string_view name) {
  for (const auto& [kind, known] : names) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

}  // namespace mylos::parallel
