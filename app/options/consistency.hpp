#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"

/// What options mean together.
namespace mylos::app {

/// Works out values that several options say (batch, micro-batch, length) and checks that what a command needs is
/// there and that no option is given that would do nothing. Errors: UsageError.
void resolve(const Command& command, Arguments& arguments);

/// What is said for a rank, once their number is known: until then there is one. Errors: UsageError.
void resolve_ranks(Arguments& arguments, std::size_t ranks);
/// The batch alone.
void resolve_batch(Arguments& arguments, std::size_t ranks);

}  // namespace mylos::app
