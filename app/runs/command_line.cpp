#include "app/runs/command_line.hpp"
#include "app/options/train_options.hpp"

#include "app/plan/job_script.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"

#include <fmt/format.h>

namespace mylos::app {
namespace {

bool is_left_out(const Arguments& arguments, const TypedOption& option, bool goes_on) {
  return option.name == "overwrite" || (option.name == "resume" && (goes_on || arguments.train->resume == "never"));
}

}  // namespace

std::string how_to_go_on(const Arguments& arguments, bool goes_on, std::size_t ranks) {
  std::string command = "mylos train";
  for (const TypedOption& option : arguments.typed) {
    if (is_left_out(arguments, option, goes_on)) continue;
    for (const std::string& word : option.words) command += " " + shell_word(word);
  }
  // These two options override values of --config.
  if (arguments.sources.was_configured("overwrite")) command += " --no-overwrite";
  if (arguments.sources.was_configured("resume") && (goes_on || arguments.train->resume == "never"))
    command += " --resume auto";
  const bool is_saved = !parallel::resolve_checkpoint(arguments.run.engine.output).empty();
  return fmt::format("{}{}: {}",
                     is_saved ? "to continue from the checkpoint" : "no checkpoint was saved; to start over",
                     ranks > 1 ? ", on any number of ranks" : "", command);
}

}  // namespace mylos::app
