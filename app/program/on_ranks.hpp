#pragma once

#include "core/base/files/file_reader.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/launch/launch.hpp"
#include "tasks/interface/task_kind.hpp"
#include "train/engine/selection/attention_selection.hpp"

#include <functional>
#include <memory>

/// Makes several ranks behave like one program: one error message, one exit code.
namespace mylos::app {

/// Thrown after an error has been reported. The program then ends with this exit code and prints nothing more.
struct AlreadyReported {
  int exit_code = 0;
};

/// Runs `work` on all ranks and returns its exit code. The first rank reports errors that all ranks have (UsageError,
/// parallel::SharedError). Any other error is reported by the lowest rank that fails. With several ranks, each rank
/// that fails then throws AlreadyReported, so that `launch` does not wait for the others.
int on_ranks(parallel::Launch& launch, const std::function<int()>& work);

/// Runs `work`, which is not collective, on every rank. An error on any rank is thrown on all ranks: as UsageError if
/// it was one, else as parallel::SharedError.
void on_all_ranks(parallel::Communicator& ranks, const std::function<void()>& work);

/// Does the same, but runs `work` on the first rank before it runs on the others, which are given copies of the
/// directories, small files and values that the first rank has read with its argument. If the first rank fails, its
/// message names no rank, and the others do not run `work`.
void on_all_ranks_with_copies(parallel::Communicator& ranks, const std::function<void(const FileReader& files)>& work);

/// A task, and what its attention kernel was selected by.
struct TaskOnRanks {
  std::unique_ptr<tasks::Task> task;
  train::AttentionSelection attention;
};

/// Makes the same task on all ranks, which must pass the same `run`. Only the first rank reads and tokenizes the data
/// files, and sends the samples to the other ranks, which hold large arrays once a node (parallel::broadcast_values);
/// tasks that read data during training open the files on every rank. The first rank also reads small files of the
/// model, directories of data and indexes for all ranks. `notice` also gets a line about nodes whose ranks cannot share
/// memory, and about the attention kernel (choose_attention). Collective. Errors: those of TaskKind::make, thrown by
/// every rank (see on_all_ranks_with_copies). Messages about data that the first rank reads name no rank.
TaskOnRanks make_task(parallel::Communicator& ranks, const tasks::TaskKind& kind, const tasks::RunConfig& run,
                      const Notice& notice);

}  // namespace mylos::app
