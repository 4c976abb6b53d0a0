#pragma once

#include "app/options/arguments.hpp"
#include "app/options/options.hpp"

#include <cstddef>
#include <span>
#include <string_view>

/// The commands of the program: what each is called, takes and does. app/run_commands.hpp has the functions that do it.
namespace mylos::app {

struct Command {
  std::string_view name;
  unsigned bit = 0;            ///< CommandBit; 0 where it has no options
  std::string_view arguments;  ///< of the usage line, after the name
  std::string_view summary;
  std::size_t least_positional = 0;
  std::size_t most_positional = 0;
  bool runs_on_ranks = false;  ///< together, or each for itself without harm
  std::string_view task = {};  ///< the only kind of task that has it; empty = all
};

std::span<const Command> commands();

/// The command called `name`, or null.
const Command* find_command(std::string_view name);

}  // namespace mylos::app
