#pragma once

#include "app/options/arguments.hpp"
#include "app/options/command_rows.hpp"

#include <functional>

/// The functions of the commands.
namespace mylos::app {

// int run_train(const Arguments&) and so on, one file each, but those of one task in task_commands.cpp. Errors:
// UsageError (exit code 2) and std::runtime_error (exit code 1).
#define MYLOS_FUNCTION(name, ...) int run_##name(const Arguments& arguments);
MYLOS_COMMANDS(MYLOS_FUNCTION)
#undef MYLOS_FUNCTION

/// Does the same as run_train on ranks that a launcher started, each of which calls `parse` after MPI has started. They
/// take the small files that this reads from copies of the first rank (on_all_ranks_with_copies). Until then a rank
/// waits at most `collective_timeout` seconds for others.
int run_launched_train(double collective_timeout, const std::function<Arguments(const FileReader& files)>& parse);

}  // namespace mylos::app
