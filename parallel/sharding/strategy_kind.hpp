#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::parallel {

/// How parameters, gradients and optimizer state are distributed over ranks: the values of --mode.
enum class StrategyKind { replicated, sharded_optimizer, sharded_gradients, sharded, hybrid };

struct StrategyDescription {
  StrategyKind kind;
  std::string name;                  ///< "sharded-optimizer" and so on
  std::vector<std::string> aliases;  ///< names that other programs give it
  bool shards_optimizer, shards_gradients, shards_values;
};
/// All modes, in the order in which users see them.
const std::vector<StrategyDescription>& every_strategy();

/// The name. parse_mode returns nullopt if no mode has it.
std::string_view to_string(StrategyKind kind);
std::optional<StrategyKind> parse_strategy(std::string_view name);

/// Return true if a mode shards the parameter values, the gradients, or the optimizer state.
bool shards_values(StrategyKind kind);
bool shards_gradients(StrategyKind kind);
bool shards_optimizer(StrategyKind kind);

/// Returns how many consecutive ranks split a unit in a mode: the size of Mesh's shard groups. `shard_size` is used in
/// hybrid mode only.
std::size_t ranks_that_split(StrategyKind kind, std::size_t shard_size, std::size_t ranks);

struct StrategySettings {
  StrategyKind kind = StrategyKind::replicated;
  bool bfloat16_gradients = false;  ///< gradients are exchanged as bfloat16 and summed in float
  /// Sums over micro-batches are balanced binary trees, and sums of blocks are exact (--deterministic).
  bool tree_sums = false;
  std::size_t micro_batches = 1;  ///< maximum per rank and step; with tree_sums the exact number on every rank
};

}  // namespace mylos::parallel
