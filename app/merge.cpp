#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

/// mylos merge: writes a model with an adapter in its weights.
namespace mylos::app {

int run_merge(const Arguments& configured) {
  Arguments arguments = configured;
  resolve_model_argument(FileReader(), arguments, [](const std::string&) {});  // merge has no --max-length
  const std::filesystem::path &adapter = arguments.run.task.adapters.directory, &output = arguments.run.engine.output;
  if (adapter.empty()) throw UsageError("merge needs --adapter; see mylos merge --help");
  check_new_directory(output);
  arguments.task->merge(arguments.run, output, log_line);
  log_line(fmt::format("{}: {} with {} in its weights", output.string(), arguments.run.task.model.string(),
                       adapter.string()));
  return 0;
}

}  // namespace mylos::app
