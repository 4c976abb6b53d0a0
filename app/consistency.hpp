#pragma once

#include "app/arguments.hpp"
#include "app/commands.hpp"

/// What options mean together.
namespace mylos::app {

/// Works out values that several options say (batch, micro-batch, length) and checks that what a command needs is
/// there and that no option is given that would do nothing. Errors: UsageError.
void settle(const Command& command, Arguments& arguments);

}  // namespace mylos::app
