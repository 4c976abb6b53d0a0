#include "parallel/sharding/mode_kind.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

const ModeDescription& describe_mode(ModeKind kind) {
  return *std::ranges::find(every_mode(), kind, &ModeDescription::kind);
}

}  // namespace

const std::vector<ModeDescription>& every_mode() {
  static const std::vector<ModeDescription> modes = {
      {ModeKind::replicated, "replicated", {"ddp"}, false, false, false},
      {ModeKind::sharded_optimizer, "sharded-optimizer", {"zero1", "deepspeed_stage_1"}, true, false, false},
      {ModeKind::sharded_gradients,
       "sharded-gradients",
       {"zero2", "deepspeed", "deepspeed_stage_2"},
       true,
       true,
       false},
      {ModeKind::sharded, "sharded", {"zero3", "fsdp", "deepspeed_stage_3"}, true, true, true},
      {ModeKind::hybrid, "hybrid", {"hsdp"}, true, true, true},
  };
  return modes;
}

bool shards_optimizer(ModeKind kind) { return describe_mode(kind).shards_optimizer; }
bool shards_gradients(ModeKind kind) { return describe_mode(kind).shards_gradients; }
bool shards_values(ModeKind kind) { return describe_mode(kind).shards_values; }

std::size_t ranks_that_split(ModeKind kind, std::size_t shard_size, std::size_t ranks) {
  if (!shards_optimizer(kind)) return 1;
  return kind == ModeKind::hybrid ? shard_size : ranks;
}

std::string_view to_string(ModeKind kind) { return describe_mode(kind).name; }

std::optional<ModeKind> parse_mode(std::string_view name) {
  for (const ModeDescription& mode : every_mode()) {
    if (mode.name == name) return mode.kind;
  }
  return std::nullopt;
}

}  // namespace mylos::parallel
