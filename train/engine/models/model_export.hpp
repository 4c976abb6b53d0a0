#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

/// Exports the model's tensors through the host piece by piece, without a copy of the model in memory.
namespace mylos::train {

/// Reads values of a state tensor from element `first` on. State tensors are replicated on every rank.
void read_state(const ParameterStore& store, std::size_t state_tensor, std::size_t first, std::span<float> values);

/// Receives values of a tensor from element `first` on.
using TensorSink = std::function<void(const ParameterTensor& tensor, std::size_t first, std::span<const float> values)>;

/// A rank that writes tensors, and the tensors: numbers in the order of the table's tensors, then its state tensors.
struct WrittenTensors {
  std::size_t rank = 0;
  std::vector<std::size_t> tensors;
};

/// Passes master weights and state to `take` on the ranks that write them, in pieces. The ranks that own elements send
/// them to the writer. The pieces of different writers alternate, so that all writers stay busy. Collective.
void gather_tensors(parallel::Communicator& ranks, const ParameterStore& store, parallel::ShardingStrategy& strategy,
                    std::span<const WrittenTensors> writers, const TensorSink& take);

/// Divides an export of files with the given numbers of tensors among writers: file f is that of writer f % writers.
/// `writer_of` gives the writer of each rank; rank 0 is a writer. If there are more writers than files, the files are
/// spread evenly over the writers, and thus over nodes.
std::vector<WrittenTensors> divide_export(std::span<const std::size_t> files, std::span<const std::size_t> writer_of);

/// Passes all tensors of a model: those of the table in order, then its state tensors, each from the first element to
/// the last.
using TensorSource = std::function<void(const TensorSink& take)>;

/// Exports the tensors of `source` into `directory`, in a process without other ranks.
void export_model(const ModelExporter& exporter, const TensorSource& source, const std::filesystem::path& directory);

/// Exports the model of `task` into `directory`. The first rank writes, or several of the ranks in `writer_of` do if
/// the export has several files; the others send them their parts. `check` is called on the first rank before anything
/// is written, and before the directory gets its name. Collective.
/// Errors: those of `check`; std::invalid_argument if the task has no exporter. An error of the export is thrown on
/// every rank, so that no rank is left waiting.
void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ShardingStrategy& strategy, const std::filesystem::path& directory,
                  std::span<const std::size_t> writer_of, const std::function<void()>& check);

}  // namespace mylos::train
