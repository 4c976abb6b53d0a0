#pragma once

#include "app/options/commands.hpp"
#include "tasks/task_kinds.hpp"

#include <span>
#include <string>

namespace mylos::app {

/// The kind of task that `words`, a command line after the command's name, is about: the command's only one, else as
/// --task says, else the file of --config, else the config.json of --model; without any of these the default. Never
/// fails: what is wrong with a word is told where it is read.
const tasks::TaskKind& choose_task(const Command& command, std::span<const std::string> words);

}  // namespace mylos::app
