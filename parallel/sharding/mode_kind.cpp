#include "parallel/sharding/mode_kind.hpp"

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

bool shards_values(ModeKind kind) { return kind == ModeKind::sharded || kind == ModeKind::hybrid; }
bool shards_optimizer(ModeKind kind) { return kind != ModeKind::replicated; }
bool shards_gradients(ModeKind kind) { return shards_values(kind) || kind == ModeKind::sharded_gradients; }

std::size_t ranks_that_split(ModeKind kind, std::size_t shard_size, std::size_t ranks) {
  if (kind == ModeKind::replicated) return 1;
  return kind == ModeKind::hybrid ? shard_size : ranks;
}

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
