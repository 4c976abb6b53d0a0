#pragma once

#include "core/base/files/file_reader.hpp"
#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Initialises parameters.
namespace mylos::train {

/// Elements [first, first + count) of a tensor, filled by one of the ranks that own them.
struct FilledPiece {
  std::size_t tensor = 0, first = 0, count = 0;
  std::size_t by = 0;  ///< rank in ShardingStrategy::copies
};

/// What fill_parameters has filled.
struct FilledParameters {
  std::vector<FilledPiece> pieces = {};
  /// The sum of a hash of each element of an adapted model that this rank has read, and, on the first rank, of how the
  /// adapters are applied. So the sum over all ranks depends on neither their number nor the mode. 0 if the model
  /// itself is trained.
  std::uint64_t adapted_checksum = 0;
  /// The checksum of the first elements of one tensor, which all ranks read if there are several; else 0.
  std::uint64_t compared_checksum = 0;
};

/// Returns FilledParameters::adapted_checksum of the network whose table this is, over all ranks. `read` passes tensors
/// to its argument; those that are trained do not count.
std::uint64_t adapted_checksum(const ParameterTable& table, const std::function<void(const TensorWriter&)>& read);

/// Returns copies of what the first rank reads in Task::read_weight_headers. With them, fill_parameters opens only
/// files whose values this rank reads. Empty if there is one rank. Collective. Errors: those of the task, thrown on
/// every rank.
FileCopies copy_weight_headers(parallel::Communicator& ranks, const Task& task);

/// Fills master weights and state from the task. Tensors without values in the task are drawn from their initialiser
/// with `seed`; without a seed this is an error (std::runtime_error) that names the tensor: nothing is scored with
/// random weights. Each rank reads, or draws, elements that it owns, in pieces of at most piece_elements. Ranks that
/// own the same elements take turns, and only the first rank fills the state, so that together they read a file once:
/// the master weights and the state are complete after pass_on of the returned pieces. Not collective.
[[nodiscard]] FilledParameters fill_parameters(const FileReader& files, const Task& task,
                                               std::optional<std::uint64_t> seed, ParameterStore& store,
                                               parallel::ShardingStrategy& strategy);
/// Copies each piece to the other ranks that own it, and the first rank's state to all others. Collective.
/// ShardingStrategy::sync_parameters must follow to update the parameters. Errors: std::runtime_error on every rank if
/// ranks have read different models, as from the disks of their nodes.
void pass_on(const FilledParameters& filled, const ParameterStore& store, parallel::ShardingStrategy& strategy);
/// Calls fill_parameters with copies of the headers, pass_on and sync_parameters. Collective.
void load_initial_parameters(const ExecutionSpace& space, const Task& task, std::optional<std::uint64_t> seed,
                             ParameterStore& store, parallel::ShardingStrategy& strategy);

/// The parameters of a task's model, loaded in a single process for inference.
class LoadedParameters {
 public:
  /// Allocates memory and loads the values. Errors: std::runtime_error naming a tensor without values in the task.
  LoadedParameters(const ExecutionSpace& space, const Task& task, Precision precision);
  LoadedParameters(const LoadedParameters&) = delete;  // mode_ refers to store_
  LoadedParameters& operator=(const LoadedParameters&) = delete;

  const ParameterStore& store() const { return store_; }
  UnitHooks& hooks() { return strategy_->hooks(); }

 private:
  ParameterStore store_;
  std::unique_ptr<parallel::ShardingStrategy> strategy_;
};

}  // namespace mylos::train
