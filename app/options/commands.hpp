#pragma once

#include "app/options/arguments.hpp"
#include "app/options/options.hpp"

#include <cstddef>
#include <span>
#include <string_view>

/// The table of commands: names, arguments and properties. app/run_commands.hpp declares their functions.
namespace mylos::app {

struct Command {
  std::string_view name;
  unsigned bit = 0;            ///< CommandBit; 0 if it has no options
  std::string_view arguments;  ///< the arguments in its usage line
  std::string_view summary;
  std::size_t least_positional = 0;
  std::size_t most_positional = 0;
  bool runs_on_ranks = false;  ///< jointly, or independently without harm
  std::string_view task = {};  ///< the only task that has this command; empty: all tasks
};

std::span<const Command> commands();

/// Returns the command called `name`, or null.
const Command* find_command(std::string_view name);

}  // namespace mylos::app
