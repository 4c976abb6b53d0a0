#pragma once

#include <string>

/// Manual page and shell completion of an installed program, generated from the tables of commands and options.
namespace mylos::app {

/// Returns the page mylos(1) in roff's man macros.
std::string manual_page();

/// Returns a bash script that completes commands and their options.
std::string bash_completion();

}  // namespace mylos::app
