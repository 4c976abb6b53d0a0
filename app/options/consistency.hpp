#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"

/// Resolves and checks combinations of options.
namespace mylos::app {

/// Resolves values that several options set together (batch, micro-batch, length). Checks that the options that a
/// command needs are given, and that no given option is without effect. Errors: UsageError.
void resolve(const Command& command, Arguments& arguments);

/// Resolves settings per rank once the number of ranks is known. Until then, one rank is assumed. Errors: UsageError.
void resolve_ranks(Arguments& arguments, std::size_t ranks);
/// Resolves only the batch.
void resolve_batch(Arguments& arguments, std::size_t ranks);

}  // namespace mylos::app
