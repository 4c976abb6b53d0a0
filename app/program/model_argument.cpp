#include "app/program/model_argument.hpp"

#include "app/options/config_file.hpp"
#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/adapter_config.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"
#include "parallel/launch/launcher.hpp"
#include "train/engine/models/best_model.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace mylos::app {
namespace {

namespace fs = std::filesystem;

/// Returns the value of an option in a run.json: the resolved value if it has one, else the setting. Null if it has
/// neither.
Json run_setting(const Json& run, const std::string& name) {
  const Json resolved = run.value(resolved_key, Json());
  const Json chosen = resolved.is_object() ? resolved.value(name, Json()) : Json();
  return chosen.is_null() ? run.value(name, Json()) : chosen;
}

/// Returns the output directory of the run that --model names, directly or by one of its models.
fs::path run_directory(const std::string& model) {
  const fs::path normal = (fs::absolute(model) / "").lexically_normal().parent_path();
  if (normal.parent_path().filename() == train::kept_models_name) return normal.parent_path().parent_path();
  return normal.filename() == "best" || normal.filename() == "last" ? normal.parent_path() : normal;
}

/// Returns the run.json of the run that --model names; null if it names none.
Json run_of_model(const std::string& model) {
  std::error_code unreadable;  // then it counts as no run
  const fs::path directory = run_directory(model), file = directory / "run.json";
  if (!fs::is_regular_file(file, unreadable) || fs::exists(directory / "config.json", unreadable)) return nullptr;
  Json run = read_json(file);
  return run.is_object() && run.contains(train::OutputDirectory::state_key) ? run : Json();
}

}  // namespace

bool check_task(const FileReader& files, const Arguments& arguments, const fs::path& model) {
  if (arguments.task->knows_model(model.string())) return true;
  const tasks::TaskKind* known = tasks::kind_of_known_model(model.string());
  const tasks::TaskKind* served = known != nullptr ? known : tasks::kind_of_model(files, model, arguments.task);
  if (served == nullptr || served == arguments.task) return served != nullptr;
  throw UsageError(
      fmt::format("--model {} is a model for {} (--task {}), but this is a run of {} (--task {}); models and tasks go "
                  "together in these pairs: {}",
                  arguments.model, served->title(), served->name(), arguments.task->title(), arguments.task->name(),
                  tasks::pairs_text()));
}

void check_new_directory(const fs::path& output) {
  std::error_code unreadable;  // reported by the code that writes there
  ensure(!fs::exists(output, unreadable) || fs::is_empty(output, unreadable),
         fmt::format("--output {}: already exists; choose a new directory", output.string()));
}

std::string take_settings(std::string_view command, const Json& run, const std::string& file, Arguments& arguments) {
  std::string taken;
  for (const Option& option : option_table(*arguments.task)) {
    const std::string& name = option.name;
    if (!names_command(option.traits.from_run, command) || arguments.sources.was_given(name)) continue;
    const Json value = run_setting(run, name);
    if (value.is_null()) continue;
    const std::string text = plain_text(value);
    set_option(arguments, option, text, fmt::format("{}: {}", file, name));
    taken += fmt::format(" --{} {}", name, text);
  }
  return taken;
}

void take_run_settings(const Command& command, Arguments& arguments) {
  // Without the model the task may be another.
  if (!arguments.task->trains_by_name(arguments.model)) families::resolve_model(FileReader(), arguments.model, false);
  const Json run = run_of_model(arguments.model);
  std::string taken;
  if (!run.is_null()) taken = take_settings(command.name, run, fmt::format("{}/run.json", arguments.model), arguments);
  if (!taken.empty()) log_line(fmt::format("{}: options from its run.json:{}", arguments.model, taken));
  arguments.task->check(arguments.run);
}

void resolve_model_argument(const FileReader& files, Arguments& arguments, const Notice& notice) {
  const bool is_first = parallel::launched_rank(parallel::process_environment) == 0;
  fs::path& model = arguments.run.task.model;
  model = arguments.task->trains_by_name(arguments.model) ? fs::path(arguments.model)
                                                          : families::resolve_model(files, arguments.model, is_first);
  fs::path& adapter = arguments.run.task.adapters.directory;
  if (const fs::path own = families::adapter_directory(arguments.model); !own.empty()) {
    for (const char* other : {"adapter", "lora-rank", "freeze"}) {
      const Option* option = find_option(other, *arguments.task);
      if (option == nullptr || option->print(arguments).is_null()) continue;
      throw UsageError(
          fmt::format("--model {} is an adapter, which excludes --{}; give its base as --model, or a model "
                      "that mylos merge made of both",
                      arguments.model, other));
    }
    adapter = own;
    const data::AdapterConfig config = data::read_adapter_config(files, own, [](const std::string&) {});
    arguments.model = families::hub_name(files, config.base, model);
    if (arguments.model.empty()) arguments.model = model.string();  // run.json names both
  }
  arguments.run.task.adapters.base = families::hub_name(files, arguments.model, model);  // by which others find it too
  if (!check_task(files, arguments, model)) families::check_model_family(files, model);
  arguments.task->fit_model(files, arguments.run, arguments.model, arguments.sources, notice);
}

}  // namespace mylos::app
