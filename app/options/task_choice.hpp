#pragma once

#include "app/options/commands.hpp"
#include "core/base/files/file_reader.hpp"
#include "tasks/task_kinds.hpp"

#include <span>
#include <string>
#include <string_view>

namespace mylos::app {

/// Returns the task of `words`, a command line after the command's name: the command's only task, else that of --task,
/// of the --config file, of config.json in --model, or of --recipe; otherwise the default. Never fails: errors in a
/// word are reported when it is parsed.
const tasks::TaskKind& choose_task(const FileReader& files, const Command& command, std::span<const std::string> words);

/// Returns the value of the last option in `words` that is called `name`, also by an alias; empty if absent. Never
/// fails, in the same way.
std::string typed_value_of(std::span<const std::string> words, std::string_view name);

/// Returns --collective-timeout in seconds, as `words` give it, else the default. Never fails, in the same way.
double collective_timeout_in(std::span<const std::string> words);

/// Checks the model that chooses the task, unless the task is named: without it, options may be refused that its task
/// has. Errors: those of families::resolve_model, and std::runtime_error if the model is of no family.
void check_named_model(const FileReader& files, const Command& command, std::span<const std::string> words);

}  // namespace mylos::app
