#pragma once

#include "parallel/communicator/communicator.hpp"
#include "tasks/interface/task_kind.hpp"

#include <memory>

namespace mylos::app {

/// Makes the same task on all ranks, which must pass the same `run`. The first rank alone reads and tokenizes the data
/// files, and sends the data to the others; a task that reads data as it trains opens them on every rank. Collective.
/// Errors: on every rank, those of TaskKind::make, as on_all_ranks throws them; an error in the data of the first rank
/// has no rank in its message.
std::unique_ptr<tasks::Task> make_task(parallel::Communicator& ranks, const tasks::TaskKind& kind,
                                       const tasks::RunConfig& run, const Notice& notice);

}  // namespace mylos::app
