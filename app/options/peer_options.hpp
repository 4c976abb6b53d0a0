#pragma once

#include "app/options/commands.hpp"
#include "core/base/options/peer_option.hpp"
#include "tasks/task_kinds.hpp"

#include <string>
#include <string_view>
#include <vector>

/// The table of options of Hugging Face's run_qa and Trainer, Lightning, DeepSpeed and FSDP. Other names of options of
/// ours are translated before values are parsed (app/options/settings.hpp). Options that Mylos does not have are
/// accepted with a remark if they have no effect here; those that would change the run are refused with a message
/// naming ours. docs/coming-from.md lists all of them.
namespace mylos::app {

/// Returns the rows common to all tasks, and then those of `task`, which count where both have a name.
std::vector<PeerOption> peer_options(const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns what a name, as written in the table, is to `command` beside a name of an option of ours; null if it is no
/// more than that.
const PeerOption* find_peer_option(std::string_view name, const Command& command,
                                   const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns the remark on why `shown` `value` has no effect. `shown` is the option as typed ("--report_to"), or the key
/// of a configuration with its file. Errors: UsageError if it would have an effect.
std::string remark_on(const PeerOption& option, std::string_view shown, std::string_view value);

/// Returns the hint that an error about the unknown name `typed` adds: "; did you mean --batch?" if one of `names` is
/// similar, "; use --epochs" if a refused peer option with this answer is similar, otherwise an empty string. `prefix`
/// is written before names ("--").
std::string suggestion_with_peers(std::string_view typed, std::vector<std::string> names, std::string_view prefix,
                                  const Command& command, const tasks::TaskKind& task);

}  // namespace mylos::app
