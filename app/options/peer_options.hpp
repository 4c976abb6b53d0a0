#pragma once

#include "tasks/task_kinds.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Options of Hugging Face's run_qa and Trainer, Lightning, DeepSpeed and FSDP that Mylos does not have. Options
/// without an effect here are accepted with a remark; options that would change the run are refused with a message
/// naming ours. docs/coming-from.md lists all of them.
namespace mylos::app {

/// Returns the peer options common to all tasks and those for the data of `task`.
std::vector<tasks::PeerOption> peer_options(const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns the peer option with this name, as written in the table; null if there is none.
const tasks::PeerOption* find_peer_option(std::string_view name,
                                          const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns the remark on why `shown` `value` has no effect. `shown` is the option as typed ("--report_to"), or the key
/// of a configuration with its file. Errors: UsageError if it would have an effect.
std::string remark_on(const tasks::PeerOption& option, std::string_view shown, std::string_view value);

/// Returns the hint that an error about the unknown name `typed` adds: "; did you mean --batch?" if one of `names` is
/// similar, "; use --epochs" if a refused peer option with this answer is similar, otherwise an empty string. `prefix`
/// is written before names ("--").
std::string suggestion_with_peers(std::string_view typed, std::vector<std::string> names, std::string_view prefix,
                                  const tasks::TaskKind& task);

}  // namespace mylos::app
