#pragma once

#include "app/commands.hpp"

#include <string>

/// What --help prints, derived from the tables of commands and options.
namespace mylos::app {

/// All commands.
std::string program_help();

/// Usage, and every option with unit, default and the peers' names.
std::string command_help(const Command& command);

}  // namespace mylos::app
