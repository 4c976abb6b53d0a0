#include "app/program/model_argument.hpp"

#include "app/options/config_file.hpp"
#include "app/options/consistency.hpp"
#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/options/usage_error.hpp"
#include "core/base/json.hpp"
#include "core/base/standard_output.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/model_names.hpp"
#include "parallel/launch/launcher.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace mylos::app {
namespace {

namespace fs = std::filesystem;

/// Returns the value of an option in a run.json, and for --squad the version that the run found out from its data; null
/// where run.json has none.
Json run_setting(const Json& run, const std::string& name) {
  if (name != "squad") return run.value(name, Json());
  const Json resolved = run.value(resolved_key, Json());
  return resolved.is_object() ? resolved.value(name, Json()) : Json();
}

/// The run's output directory that --model is, or whose best/ or last/ it is.
fs::path run_directory(const std::string& model) {
  const fs::path normal = (fs::absolute(model) / "").lexically_normal().parent_path();
  return normal.filename() == "best" || normal.filename() == "last" ? normal.parent_path() : normal;
}

/// run.json of the run that --model names; null where it names none.
Json run_of_model(const std::string& model) {
  std::error_code unreadable;  // then it is no run
  const fs::path directory = run_directory(model), file = directory / "run.json";
  if (!fs::is_regular_file(file, unreadable) || fs::exists(directory / "config.json", unreadable)) return nullptr;
  Json run = read_json(file);
  return run.is_object() && run.contains(train::OutputDirectory::state_key) ? run : Json();
}

}  // namespace

void take_run_settings(const Command& command, Arguments& arguments) {
  const Json run = run_of_model(arguments.model);
  std::string taken;
  for (const char* name : {"max-length", "doc-stride", "squad"}) {
    const Option& option = *find_option(name);
    if (run.is_null() || arguments.given.contains(name) || (option.name == "squad" && command.bit != ask_command)) {
      continue;
    }
    const Json value = run_setting(run, name);
    if (value.is_null()) continue;
    const std::string text = plain_text(value);
    set_option(arguments, option, text, fmt::format("{}/run.json: {}", arguments.model, name));
    taken += fmt::format(" --{} {}", name, text);
  }
  if (!taken.empty()) log_line(fmt::format("{}: as its run.json says:{}", arguments.model, taken));
  check_windows(arguments);
}

void resolve_model_argument(Arguments& arguments) {
  resolve_model_argument(arguments, [](const std::string& line) { log_line(line); });
}

void resolve_model_argument(Arguments& arguments, const Notice& notice) {
  tasks::SquadConfig& squad = arguments.run.squad;
  squad.model = data::resolve_model(arguments.model, parallel::launched_rank(parallel::process_environment) == 0);
  const std::size_t positions = data::read_bert_config(squad.model / "config.json").max_position_embeddings;
  if (squad.max_length <= positions) return;
  if (!arguments.given.contains("max-length")) {
    // As run_qa: the default is no more than the model takes. What the user asked for is never changed.
    notice(fmt::format("{} has {} positions: --max-length is {}", arguments.model, positions, positions));
    squad.max_length = positions;
    return;
  }
  throw UsageError(fmt::format("--max-length {}: expected at most {}, the positions that {} has", squad.max_length,
                               positions, arguments.model));
}

}  // namespace mylos::app
