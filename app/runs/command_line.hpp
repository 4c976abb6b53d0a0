#pragma once

#include "app/options/arguments.hpp"

#include <cstddef>
#include <string>

/// The command line of a run, as its user may type it again.
namespace mylos::app {

/// Says how the interrupted run in the output directory goes on, with the command that does so: the one that was typed,
/// without --overwrite, and without --resume where `goes_on`, or where it is "never". Options of peers without effect
/// are left out.
std::string how_to_go_on(const Arguments& arguments, bool goes_on, std::size_t ranks);

}  // namespace mylos::app
