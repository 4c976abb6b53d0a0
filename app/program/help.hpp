#pragma once

#include "app/options/commands.hpp"

#include <string>
#include <string_view>
#include <vector>

/// What --help prints, derived from the tables of commands and options.
namespace mylos::app {

/// All commands.
std::string program_help();

/// Usage, and every option for runs of `task` with unit, default and the peers' names.
std::string command_help(const Command& command, const tasks::TaskKind& task = tasks::default_task_kind());

/// The sections of a command's options for runs of `task`, in the order of the table.
std::vector<std::string_view> option_sections(const Command& command,
                                              const tasks::TaskKind& task = tasks::default_task_kind());

/// "help text [default] (also --alias)".
std::string option_text(const Option& option, const Arguments& defaults);

/// `text` with a capital at its beginning.
std::string sentence(std::string_view text);

}  // namespace mylos::app
