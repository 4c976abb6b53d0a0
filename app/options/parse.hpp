#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"
#include "app/options/options.hpp"
#include "core/base/files/file_reader.hpp"

#include <span>
#include <string>
#include <string_view>

/// Parses the words of a command line into Arguments.
namespace mylos::app {

/// Returns the defaults of `command` for runs of `task`.
Arguments default_arguments(const Command& command, const tasks::TaskKind& task = tasks::default_task_kind());

/// Parses the words after the command's name. Options are --name VALUE or --name=VALUE, spelled with "-" or "_"; words
/// after "--" are positional. Reads the --config file first, so that options override it. With --help, ignores
/// everything else. Errors: UsageError naming the option, its value and the expected values; those of
/// check_named_model if another task might take them.
Arguments parse_arguments(const FileReader& files, const Command& command, std::span<const std::string> words);

/// Sets `option` to the value `text`; errors call it `name` ("--max_steps", "run.json: steps"). Errors: UsageError.
void set_option(Arguments& arguments, const Option& option, std::string_view text, std::string_view name);

/// Errors: UsageError, always, which says that `name` has the value `text`, where `expects` says what it may have.
[[noreturn]] void refuse_value(std::string_view name, std::string_view text, std::string_view expects);

/// Returns "; did you mean X?", or an empty string if no name is similar.
std::string suggestion(std::string_view text, std::span<const std::string> names, std::string_view prefix);

}  // namespace mylos::app
