#include "app/program.hpp"

#include "app/options/commands.hpp"
#include "app/options/parse.hpp"
#include "app/options/recipes.hpp"
#include "app/options/task_choice.hpp"
#include "app/options/words.hpp"
#include "app/program/build_info.hpp"
#include "app/program/exit_codes.hpp"
#include "app/program/help.hpp"
#include "app/program/manual.hpp"
#include "app/program/on_ranks.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/launch/launcher.hpp"
#include "train/engine/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>

namespace mylos::app {
namespace {

struct CommandFunction {
  std::string_view name;
  int (*run)(const Arguments&);
};
// Not std::to_array: nvcc of CUDA 12.4 does not accept a constexpr array of structs with function pointers from it.
#define MYLOS_FUNCTION(name, ...) {#name, run_##name},
constexpr CommandFunction functions[] = {MYLOS_COMMANDS(MYLOS_FUNCTION)};
#undef MYLOS_FUNCTION

const Command& get_command(const std::string& name) {
  const Command* command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const Command& known : commands()) names.emplace_back(known.name);
    throw UsageError(
        fmt::format("no command \"{}\"{} (mylos --help lists them)", printable(name), suggestion(name, names, "")));
  }
  return *command;
}

/// Refuses to run a command without ranks as several processes, which would do the same work and write the same files.
/// Does not use MPI, because such commands also run where MPI cannot start.
void check_launch(const Command& command) {
  const std::size_t launched = parallel::launched_ranks(parallel::process_environment);
  if (command.runs_on_ranks || launched <= 1) return;
  throw UsageError(fmt::format("{} runs as one process, but the launcher started {}; start it without the launcher",
                               command.name, launched));
}

int run_command(const Command& command, std::span<const std::string> words) {
  if (command.trains() && asks_for_recipes(words)) {
    if (parallel::launched_rank(parallel::process_environment) == 0) print(list_of_recipes());
    return success;
  }
  // The first rank then reads the model's config.json, which decides the task, for all ranks. Help is printed even
  // where MPI cannot start. Without the names of options, every word that may ask for help counts.
  if (command.name == "train" && parallel::is_launched(parallel::process_environment) &&
      !read_words({}, words, TruthWords::values).help) {
    return run_launched_train(collective_timeout_in(words),
                              [&](const FileReader& files) { return parse_arguments(files, command, words); });
  }
  const Arguments arguments = parse_arguments(FileReader(), command, words);
  if (arguments.help) {
    if (parallel::launched_rank(parallel::process_environment) == 0) print(command_help(command, *arguments.task));
    return success;
  }
  check_launch(command);
  const auto found = std::ranges::find(functions, command.name, &CommandFunction::name);
  require(found != std::end(functions), "run_command: a command without a function");
  return found->run(arguments);
}

/// Returns the text of `mylos help` for `words`.
std::string help_text(std::span<const std::string> words) {
  if (words.empty()) return program_help();
  if (words[0] == "--man") return manual_page();
  if (words[0] == "--bash") return bash_completion();
  return command_help(get_command(words[0]));
}

int dispatch(std::span<const std::string> words) {
  if (words.empty()) throw UsageError("no command; see mylos --help");
  const std::string& first = words.front();
  if (first == "--version") {
    const BuildInfo build = build_info();
    print(fmt::format("mylos {} ({})\n", build.version, build.commit));
    return success;
  }
  const bool asks_for_help = first == "--help" || first == "-h" || first == "help";
  if (asks_for_help) {
    print(help_text(words.subspan(1)));
    return success;
  }
  return run_command(get_command(first), words.subspan(1));
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  // Messages of the engine name options: "--micro-batch", or "--micro-batch 4" with a value.
  set_setting_spelling([](std::string_view name, std::string_view value) {
    return value.empty() ? fmt::format("--{}", name) : fmt::format("--{} {}", name, value);
  });
  // A closed pipe is detected by the failing write, instead of a signal that would also end a training run.
  std::signal(SIGPIPE, SIG_IGN);
  // Likewise for a file that has reached its size limit (ulimit -f).
  std::signal(SIGXFSZ, SIG_IGN);
  // Whoever started this program may ignore it, and then the system keeps no exit codes of programs that it starts.
  std::signal(SIGCHLD, SIG_DFL);
  train::bound_heaps();
  try {
    start_signal_thread();
    const int exit_code = dispatch(words);
    flush_output();
    return exit_code;
  } catch (const AlreadyReported& configured) {
    return configured.exit_code;
  } catch (...) {
    // Before a launch, each process has the same error; only the launcher's first process prints it.
    return report_exception(parallel::launched_rank(parallel::process_environment) == 0);
  }
}

}  // namespace mylos::app
