#include "app/program.hpp"

#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/help.hpp"
#include "app/parse.hpp"
#include "app/standard_output.hpp"
#include "app/usage_error.hpp"
#include "data/files.hpp"

#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <new>
#include <span>

namespace mylos::app {
namespace {

constexpr int success = 0, failure = 1, usage = 2;

const Command& get_command(const std::string& name) {
  const Command* command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const Command& known : commands()) names.emplace_back(known.name);
    throw UsageError(fmt::format("no command \"{}\"{} (mylos --help lists them)", data::printable(name),
                                 suggestion(name, names, "")));
  }
  if (command->run == nullptr) throw UsageError(fmt::format("{}: this version does not have this command", name));
  return *command;
}

int run_command(const Command& command, std::span<const std::string> words) {
  const Arguments arguments = parse_arguments(command, words);
  if (!arguments.help) return command.run(arguments);
  print(command_help(command));
  return success;
}

int dispatch(std::span<const std::string> words) {
  if (words.empty()) throw UsageError("no command; see mylos --help");
  const std::string& first = words.front();
  if (first == "--version") {
    print(fmt::format("mylos {}\n", build_info().version));
    return success;
  }
  const bool asks_for_help = first == "--help" || first == "-h" || first == "help";
  if (asks_for_help) {
    print(words.size() > 1 ? command_help(get_command(words[1])) : program_help());
    return success;
  }
  return run_command(get_command(first), words.subspan(1));
}

int report(const char* message, int exit_code) {
  log_line(fmt::format("mylos: error: {}", message));
  return exit_code;
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  // A reader that goes away is told by the failing write, not by a signal that would also end a training run.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that may not grow further (ulimit -f).
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int exit_code = dispatch(words);
    flush_output();
    return exit_code;
  } catch (const ReaderGone&) {
    return success;
  } catch (const UsageError& error) {
    return report(error.what(), usage);
  } catch (const std::bad_alloc&) {
    return report("out of memory", failure);
  } catch (const std::exception& error) {
    return report(error.what(), failure);
  }
}

}  // namespace mylos::app
