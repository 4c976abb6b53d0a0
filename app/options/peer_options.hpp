#pragma once

#include "tasks/task_kinds.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Options of Hugging Face's run_qa and Trainer, Lightning, DeepSpeed and FSDP that Mylos has no option for: those
/// without an effect here, which are taken with a line that says so, and those that would change a run, which are
/// refused with a line that names ours. docs/coming-from.md lists all of them.
namespace mylos::app {

/// Those of every task, and those of the data of `task`.
std::vector<tasks::PeerOption> peer_options(const tasks::TaskKind& task = tasks::default_task_kind());

/// The one of that name, as the table writes it; null where there is none.
const tasks::PeerOption* find_peer_option(std::string_view name,
                                          const tasks::TaskKind& task = tasks::default_task_kind());

/// The line that says why `shown` `value` has no effect; `shown` is the option as it was typed ("--report_to"), or the
/// key of a configuration with its file. Errors: UsageError where it would have one.
std::string remark_on(const tasks::PeerOption& option, std::string_view shown, std::string_view value);

/// Returns what an error about the unknown name `typed` adds: "; did you mean --batch?" where one of `names` is near,
/// "; use --epochs" where a name of the peers is near that is refused with this answer, else an empty string. `prefix`
/// stands before names ("--").
std::string suggestion_with_peers(std::string_view typed, std::vector<std::string> names, std::string_view prefix,
                                  const tasks::TaskKind& task);

}  // namespace mylos::app
