#pragma once

#include "app/options/arguments.hpp"
#include "core/base/option.hpp"
#include "core/base/option_kinds.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The one table of options, from which parsing, --help and run.json derive.
namespace mylos::app {

using Option = mylos::Option<Arguments>;

/// The columns of the table; the kind of option adds the rest.
inline Option named(std::string name, std::vector<std::string> aliases, std::string placeholder,
                    std::string_view section, unsigned commands, std::string help) {
  return named_option<Arguments>(std::move(name), std::move(aliases), std::move(placeholder), section, commands,
                                 std::move(help));
}

/// The values of --mode and --modes.
std::vector<Choice> mode_choices();

/// All options of all commands for runs of `task`, in the order in which help shows them: those of every task, and its
/// own.
const std::vector<Option>& option_table(const tasks::TaskKind& task = tasks::default_task_kind());

/// `name` as the table writes it: with - for _.
std::string normalized_name(std::string_view name);

/// The option of that table with this name or alias, normalised; null where there is none.
const Option* find_option(std::string_view name, const tasks::TaskKind& task = tasks::default_task_kind());

/// Those of `task` alone.
std::vector<Option> own_options(const tasks::TaskKind& task);

/// A kind, other than `task`, that has an option of its own with this name or alias; null where there is none.
const tasks::TaskKind* other_task_with(std::string_view name, const tasks::TaskKind& task);

/// The parts of the table, one file each.
std::vector<Option> data_options(const tasks::TaskKind& task);
std::vector<Option> training_options(const tasks::TaskKind& task);
std::vector<Option> rank_options();
std::vector<Option> tool_options(const tasks::TaskKind& task);
std::vector<Option> plan_options();

}  // namespace mylos::app
