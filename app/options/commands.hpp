#pragma once

#include "core/base/options/option.hpp"

#include <cstddef>
#include <span>
#include <string_view>

/// The table of commands. Its rows are in app/options/command_rows.hpp.
namespace mylos::app {

struct Command {
  std::string_view name = {};
  std::string_view arguments = {};  ///< the arguments in its usage line
  std::string_view summary = {};
  std::size_t least_positional = 0;
  std::size_t most_positional = 0;
  std::string_view task = {};          ///< the only task that has this command; empty: all tasks
  std::string_view options_of = {};    ///< a command all of whose options it has, too
  std::string_view needs = {};         ///< names of options that must have a value
  bool runs_on_ranks = false;          ///< jointly, or independently without harm
  bool takes_settings_of_run = false;  ///< from the run that trained its model

  /// Returns whether it trains: it has the options of train.
  bool trains() const { return name == "train" || options_of == "train"; }
};

std::span<const Command> commands();

/// Returns the command called `name`, or null.
const Command* find_command(std::string_view name);

/// Returns whether `command` has `option`.
bool has_option(const Command& command, const OptionRow& option);

}  // namespace mylos::app
