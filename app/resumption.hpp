#pragma once

#include "app/arguments.hpp"

#include <filesystem>
#include <string>

/// How a run goes on from a checkpoint.
namespace mylos::app {

/// Compares what the run of a checkpoint was told, `configuration` (its run.json), with the arguments, and takes over
/// what it chose by itself. Ranks and what only decides how the same numbers are computed may differ. Errors:
/// std::runtime_error that lists every other difference.
void take_up_run(const std::string& configuration, const std::filesystem::path& checkpoint, Arguments& arguments);

}  // namespace mylos::app
