#pragma once

#include "app/options/commands.hpp"
#include "app/options/options.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Texts of --help, generated from the tables of commands and options.
namespace mylos::app {

/// Returns the help text with all commands.
std::string program_help();

/// Returns the usage of a command and its options for runs of `task`, with units, defaults and names in other programs.
std::string command_help(const Command& command, const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns the sections of a command's options for runs of `task`, in table order.
std::vector<std::string_view> option_sections(const Command& command,
                                              const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns "help text [default] (also --alias)" as shown by `command`.
std::string option_text(const Option& option, const Command& command, const Arguments& defaults);

/// Returns `text` with its first letter capitalized.
std::string sentence(std::string_view text);

}  // namespace mylos::app
