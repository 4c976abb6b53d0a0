#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"

#include <span>
#include <string>
#include <string_view>

/// From the words of a command line to Arguments.
namespace mylos::app {

/// Returns the defaults of `command` for runs of `task`.
Arguments default_arguments(const Command& command, const tasks::TaskKind& task = tasks::default_task_kind());

/// Reads what follows the command's name. Options are --name VALUE or --name=VALUE with - or _; after -- everything is
/// positional. A --config file is read first, so that options win over it. With --help nothing else is looked at.
/// Errors: UsageError naming the option, its value and what is expected.
Arguments parse_arguments(const Command& command, std::span<const std::string> words);

/// Gives `option` the value `text`; errors call it `name` ("--max_steps", "run.json: steps"). Errors: UsageError.
void set_option(Arguments& arguments, const Option& option, std::string_view text, std::string_view name);

/// "; did you mean X?", or nothing where no name is near.
std::string suggestion(std::string_view text, std::span<const std::string> names, std::string_view prefix);

}  // namespace mylos::app
