#pragma once

#include "app/options/arguments.hpp"
#include "core/base/options/option.hpp"
#include "core/base/options/option_kinds.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The table of options, from which parsing, --help and run.json are derived.
namespace mylos::app {

using Option = mylos::Option<Arguments>;

/// Returns an option with the common columns of the table; helpers for each kind of option add the rest.
inline Option named(std::string name, std::string placeholder, std::string_view section, std::string_view commands,
                    std::string help, OptionTraits traits = {}) {
  return named_option<Arguments>(std::move(name), std::move(placeholder), section, commands, std::move(help), traits);
}

/// Returns the values of --mode and --modes.
std::vector<Choice> mode_choices();

/// Returns all options of all commands for runs of `task` in the order of the help text: the common ones and those of
/// the task.
const std::vector<Option>& option_table(const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns `name` as written in the table, with "-" instead of "_".
std::string normalized_name(std::string_view name);

/// Returns the option of the table with this name or alias, after normalization; null if there is none.
const Option* find_option(std::string_view name, const tasks::TaskKind& task = tasks::default_task_kind());

/// Returns whether `option` needs another one that has no value, and that nothing else stands in for.
bool lacks_needed(const Option& option, const Arguments& arguments);

/// Returns an option that was given and that `name`, such as "bench/step", does not have; null if there is none.
const Option* given_without(std::string_view name, const Arguments& arguments);

/// Errors: UsageError if an option was given that `part` of `command` does not have, such as step of bench.
void check_options_of(std::string_view command, std::string_view part, const Arguments& arguments);

/// Returns the options that only `task` has.
std::vector<Option> own_options(const tasks::TaskKind& task);

/// Errors: TaskError if tasks other than `task` have their own option with this name or alias, which a message calls
/// `shown`.
void refuse_option_of_other_tasks(std::string_view name, std::string_view shown, const tasks::TaskKind& task);

/// Parts of the table, one file each. Options of one command are in headers: train_options.hpp, plan_options.hpp,
/// tool_options.hpp.
std::vector<Option> data_options(const tasks::TaskKind& task);
std::vector<Option> training_options(const tasks::TaskKind& task);
std::vector<Option> evaluation_options(const tasks::TaskKind& task);
std::vector<Option> rank_options();

}  // namespace mylos::app
