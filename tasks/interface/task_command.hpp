#pragma once

#include "core/base/options/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// The arguments of a command that only one kind of task has.
struct CommandCall {
  const std::vector<std::string>& words;  ///< arguments that are no options
  const RunConfig& run;                   ///< settings before the model is found
  const OptionSources& sources;
  const std::filesystem::path& context;  ///< of --context
  bool json = false;                     ///< print JSON
  bool chat = false;                     ///< the words are conversations
  /// Takes the settings of the run that made the model, finds the model and starts the device. Returns the settings.
  /// Call it once, after the words are checked. Errors: UsageError, std::runtime_error.
  std::function<const RunConfig&()> start;
};

/// A command that only one kind of tasks has, by its name in the table of commands. `run` prints the results to
/// standard output, and messages to standard error. Errors: UsageError, std::runtime_error.
struct TaskCommand {
  std::string_view name;
  void (*run)(const CommandCall& call);
};

}  // namespace mylos::tasks
