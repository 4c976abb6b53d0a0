#include "app/runs/resumption.hpp"

#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/options/options.hpp"
#include "app/options/train_options.hpp"
#include "app/plan/job_script.hpp"
#include "app/runs/run_description.hpp"
#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace mylos::app {
namespace {

using Names = std::vector<std::string_view>;

/// Returns the checksums of the data that a run read, by the option that names the file; empty if run.json has none.
nlohmann::ordered_json saved_checksums(const nlohmann::ordered_json& saved) {
  const auto resolved = saved.find(resolved_key);
  if (resolved == saved.end() || !resolved->is_object()) return nlohmann::ordered_json::object();
  auto checksums = resolved->value(checksums_key, nlohmann::ordered_json::object());
  return checksums.is_object() ? checksums : nlohmann::ordered_json::object();
}

bool is_finished(const nlohmann::ordered_json& saved) {
  const auto state = saved.find(train::OutputDirectory::state_key);
  return state != saved.end() && state->is_object() && state->value("finished", false);
}

/// Adds the options of `task` whose rows say so about a run that continues.
void add_options(Names& names, OnResume on_resume, const tasks::TaskKind& task) {
  for (const Option& option : option_table(task)) {
    if (option.traits.on_resume == on_resume) names.push_back(option.name);
  }
}

/// Returns the options of the model that adapters belong to and of the adapter that they began as. Both may have moved:
/// a checkpoint has the checksums of the model and of how adapters are applied, and the adapters' values.
Names origin_of_adapters(const nlohmann::ordered_json& saved, const Arguments& arguments) {
  const tasks::AdapterSettings& adapters = arguments.run.task.adapters;
  if (adapters.rank > 0) return {"model"};
  const auto began = saved.find("adapter");
  const bool began_as_one = began != saved.end() && began->is_string();
  return began_as_one && !adapters.directory.empty() ? Names{"model", "adapter"} : Names();
}

/// Compares settings. Those in `compared_otherwise` may differ, and those whose rows say so; with --extend also the
/// length, and the result says whether it does.
train::CommandDifference difference_but_for(Names compared_otherwise, const nlohmann::ordered_json& saved,
                                            const Arguments& arguments) {
  const Command& command = *find_command("train");
  const bool extend = arguments.train->extend;
  Names may_differ = std::move(compared_otherwise);
  add_options(may_differ, OnResume::free, *arguments.task);
  if (extend || !is_finished(saved)) add_options(may_differ, OnResume::unfinished, *arguments.task);
  std::vector<std::string> all = differing_settings(saved, command, arguments, may_differ);
  if (!extend) return {.options = std::move(all)};
  add_options(may_differ, OnResume::longer, *arguments.task);
  std::vector<std::string> rest = differing_settings(saved, command, arguments, may_differ);
  const bool extends = rest.size() != all.size();
  return {.options = std::move(rest), .extends = extends};
}

bool is_left_out(const Arguments& arguments, const TypedOption& option, bool goes_on) {
  return option.name == "overwrite" || (option.name == "resume" && (goes_on || arguments.train->resume == "never"));
}

}  // namespace

train::CommandDifference difference_from_run(const nlohmann::ordered_json& saved, const Arguments& arguments) {
  return difference_but_for(arguments.train->extend ? origin_of_adapters(saved, arguments) : Names(), saved, arguments);
}

ResumedRun take_up_run(const std::string& configuration, const std::filesystem::path& checkpoint,
                       Arguments& arguments) {
  auto saved = try_parse_ordered_json(configuration);
  ensure(saved.is_object(), fmt::format("{}: /run/configuration is not a JSON object", checkpoint.string()));
  const auto settings = settings_json(*find_command("train"), arguments);
  const auto checksums = saved_checksums(saved);
  Names by_content = origin_of_adapters(saved, arguments);
  for (const auto& [option, checksum] : checksums.items()) {
    const auto setting = settings.find(option);
    if (setting != settings.end() && !setting->is_null()) by_content.emplace_back(setting.key());
  }
  const auto [differing, extends] = difference_but_for(std::move(by_content), saved, arguments);
  ensure(differing.empty(),
         fmt::format("{} belongs to a run with other options: {}; use those of the run, {}or start over with another "
                     "--output or --overwrite --resume never",
                     checkpoint.string(), fmt::join(differing, "; "),
                     arguments.train->extend ? "" : "continue to larger --steps or --epochs with --extend, "));
  take_recorded_choices(saved, checkpoint, arguments);
  return {std::move(saved), extends};
}

void check_resumed_data(const nlohmann::ordered_json& saved, const std::filesystem::path& checkpoint,
                        const std::vector<tasks::DataChecksum>& data) {
  const auto checksums = saved_checksums(saved);
  for (const tasks::DataChecksum& each : data) {
    const auto found = checksums.find(each.option);
    if (found == checksums.end()) continue;
    const std::string before = plain_text(*found);
    ensure(before == checksum_text(each),
           fmt::format("--{} {}: its data differ from those that the run of {} read: the checksum was {} and is {}; "
                       "restore the file, or start over with another --output or --overwrite --resume never",
                       each.option, each.file.string(), checkpoint.string(), before, checksum_text(each)));
  }
}

std::string changed_layout_line(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& run) {
  const nlohmann::ordered_json before = saved.is_object() ? saved.value(resolved_key, nlohmann::ordered_json()) : saved;
  if (!before.is_object() || run.value("deterministic", false)) return {};
  std::vector<std::string> changes;
  for (const char* name : {"ranks", "mode", "micro-batch"}) {
    const auto& value = run[resolved_key][name];
    if (!before.contains(name) || before[name] == value) continue;
    changes.push_back(fmt::format("{} {}, before {}", name, plain_text(value), plain_text(before[name])));
  }
  if (changes.empty()) return {};
  return fmt::format("{}: losses may differ in their last digits from those of an uninterrupted run",
                     fmt::join(changes, "; "));
}

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
