#include "app/options/commands.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

/// The commands that only one kind of tasks has, which runs them.
namespace mylos::app {
namespace {

int run_of_task(std::string_view name, const Arguments& configured) {
  Arguments arguments = configured;
  std::optional<ComputeScope> compute;
  const auto start = [&]() -> const tasks::RunConfig& {
    take_run_settings(*find_command(name), arguments);
    resolve_model_argument(FileReader(), arguments);
    compute.emplace();
    train::GemmConfig& gemm = arguments.run.engine.gemm;
    check_precision(arguments.run.engine.precision, gemm.tf32);
    // Timing the providers would take longer than an answer, and answers would depend on the timings.
    gemm.is_timed = false;
    return arguments.run;
  };
  const auto commands = arguments.task->commands();
  const auto found = std::ranges::find(commands, name, &tasks::TaskCommand::name);
  require(found != commands.end(), "run_of_task: a command that its task does not have");
  found->run({configured.positional, configured.run, configured.sources, configured.ask->context, configured.json,
              configured.chat, start});
  return 0;
}

}  // namespace

int run_ask(const Arguments& arguments) { return run_of_task("ask", arguments); }
int run_generate(const Arguments& arguments) { return run_of_task("generate", arguments); }
int run_classify(const Arguments& arguments) { return run_of_task("classify", arguments); }
int run_score(const Arguments& arguments) { return run_of_task("score", arguments); }

}  // namespace mylos::app
