#pragma once

#include <string>

/// What an installed tree has beside the program, written from the tables of commands and options.
namespace mylos::app {

/// The page mylos(1), in roff's man macros.
std::string manual_page();

/// A script for bash, which completes commands and the options of each.
std::string bash_completion();

}  // namespace mylos::app
