#include "app/program/model_argument.hpp"
#include "app/program/replaceable_file.hpp"
#include "app/run_commands.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

/// mylos prepare: converts a data set into samples once.
namespace mylos::app {

int run_prepare(const Arguments& configured) {
  Arguments arguments = configured;
  const std::filesystem::path& output = arguments.run.engine.output;
  const std::string suffix = output.extension().string();
  if (suffix != ".h5" && suffix != ".jsonl") {
    throw UsageError(fmt::format("--output {}: expected a name that ends in .h5 or .jsonl", output.string()));
  }
  const auto is_prepared = [&](const std::filesystem::path& file) { return arguments.task->is_prepared(file); };
  check_replaceable({"--output", output, "written by mylos prepare", is_prepared}, arguments.overwrite);
  if (!arguments.model.empty()) resolve_model_argument(FileReader(), arguments);
  arguments.task->prepare(arguments.run, arguments.data, output, log_line);
  return 0;
}

}  // namespace mylos::app
