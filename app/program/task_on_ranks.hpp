#pragma once

#include "parallel/communicator/communicator.hpp"
#include "tasks/interface/task_kind.hpp"
#include "train/engine/selection/attention_selection.hpp"

#include <memory>

namespace mylos::app {

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
