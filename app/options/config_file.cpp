#include "app/options/config_file.hpp"

#include "app/options/parse.hpp"
#include "app/options/peer_options.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/usage_error.hpp"
#include "core/device.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/selection/gemm_selection.hpp"
#include "train/monitor/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson parse_object(const FileReader& files, const std::filesystem::path& file) {
  const std::string text = read_text_file(files, file);
  OrderedJson parsed = try_parse_ordered_json(text);
  if (parsed.is_discarded())
    throw UsageError(fmt::format("--config {}: not JSON, or nested too deeply", file.string()));
  if (!parsed.is_object()) throw UsageError(fmt::format("--config {}: not a JSON object", file.string()));
  return parsed;
}

/// Returns the value for a message.
std::string value_text(const OrderedJson& value) { return value.is_null() ? "unset" : plain_text(value); }

/// Returns the value as it would be typed. Errors: UsageError if it is a list or an object.
std::string typed_value(const OrderedJson& value, const std::string& key, const std::filesystem::path& file) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_structured()) {
    throw UsageError(fmt::format("{}: key {}: expected a number, a string, true or false", file.string(), key));
  }
  return value.dump();
}

/// Returns the option of `command` that `key` names; null if there is none. A configuration cannot name another
/// configuration.
const Option* option_of_key(const std::string& key, const Command& command, const tasks::TaskKind& task) {
  const Option* named = find_option(key, task);
  const bool is_key = named != nullptr && has_option(command, *named) && named->name != "config";
  return is_key ? named : nullptr;
}

[[noreturn]] void fail_unknown(const std::string& key, const Command& command, const tasks::TaskKind& task,
                               const std::filesystem::path& file) {
  refuse_option_of_other_tasks(key, fmt::format("{}: {}", file.string(), printable(key)), task);
  std::vector<std::string> names;
  for (const Option& option : option_table(task)) {
    if (option_of_key(option.name, command, task) != nullptr) names.push_back(option.name);
  }
  throw UsageError(fmt::format("{}: unknown key \"{}\"{}", file.string(), printable(key),
                               suggestion_with_peers(normalized_name(key), std::move(names), "", command, task)));
}

/// Accepts a key that names a peer option without an effect here. Errors: UsageError if it would have one.
void read_peer_option(const PeerOption& option, const std::string& key, const OrderedJson& value,
                      const std::filesystem::path& file, Arguments& arguments) {
  if (value.is_null() || (value.is_structured() && value.empty())) return;
  const std::string text = plain_text(value);
  if (text.empty()) return;  // Trainer writes "fsdp" like this
  arguments.remarks.push_back(remark_on(option, fmt::format("{}: {}", file.string(), printable(key)), text));
}

void read_key(const std::string& key, const OrderedJson& value, const Command& command,
              const std::filesystem::path& file, Arguments& arguments, std::vector<Setting>& settings) {
  const Option* option = option_of_key(key, command, *arguments.task);
  const PeerOption* peer = find_peer_option(normalized_name(key), command, *arguments.task);
  if (option == nullptr && peer == nullptr) fail_unknown(key, command, *arguments.task, file);
  if (option == nullptr) return read_peer_option(*peer, key, value, file, arguments);
  if (value.is_null()) return;
  settings.push_back({option, typed_value(value, key, file), fmt::format("{}: {}", file.string(), option->name), peer});
}

/// Reads the recorded run's choice of GEMM providers.
void read_gemm(const OrderedJson& resolved, const std::filesystem::path& file, Arguments& arguments) {
  if (!resolved.is_object() || !resolved.contains("gemm")) return;
  arguments.run.engine.gemm.recorded =
      train::parse_gemm_choice(resolved["gemm"], fmt::format("{}: {}.gemm", file.string(), resolved_key));
}

/// Reads the attention kernel that the recorded run chose. One that this version does not have is not repeated.
void read_attention(const OrderedJson& resolved, Arguments& arguments) {
  if (!resolved.is_object() || !resolved.contains("attention") || !resolved["attention"].is_string()) return;
  arguments.run.task.recorded_attention = find_attention_kernel(resolved["attention"].get<std::string>());
}

/// Reads the time that the recorded run's conversations have.
void read_chat_time(const OrderedJson& resolved, Arguments& arguments) {
  if (!resolved.is_object() || !resolved.contains("chat-time") || !resolved["chat-time"].is_string()) return;
  arguments.run.task.recorded_chat_time = resolved["chat-time"].get<std::string>();
}

/// Reads the recorded run's layout, if it ran in the same execution space as this build.
void read_layout(const OrderedJson& resolved, const std::filesystem::path& file, Arguments& arguments) {
  const auto has = [&](const char* key) { return resolved.contains(key); };
  if (!resolved.is_object() || !has("ranks") || !has("micro-batch") || !has("mode") || !has("device")) return;
  if (!has("execution") || resolved["execution"] != ExecutionSpace::name()) return;
  const auto count = [&](const char* key) {
    const OrderedJson& value = resolved[key];
    ensure(value.is_number_unsigned() && value > 0, fmt::format("{}: {}.{}: expected a whole number from 1 on, not {}",
                                                                file.string(), resolved_key, key, value.dump()));
    return value.get<std::size_t>();
  };
  const auto strategy = parallel::parse_strategy(value_text(resolved["mode"]));
  ensure(strategy.has_value(),
         fmt::format("{}: {}.mode: no mode is called {}", file.string(), resolved_key, value_text(resolved["mode"])));
  arguments.run.engine.recorded_layout = {.ranks = count("ranks"),
                                          .micro_batch = count("micro-batch"),
                                          .strategy = *strategy,
                                          .device = value_text(resolved["device"])};
}

/// Returns whether two settings name the same file or directory, possibly through links.
bool is_same_file(const OrderedJson& one, const OrderedJson& other) {
  const auto is_path = [](const OrderedJson& value) {
    return value.is_string() && value.get<std::string>().starts_with('/');
  };
  if (!is_path(one) || !is_path(other)) return false;
  const auto canonical = [](const OrderedJson& value) {
    std::error_code unreadable;  // then the path is compared as written
    return std::filesystem::weakly_canonical(value.get<std::string>(), unreadable);
  };
  const std::filesystem::path path = canonical(one);
  return !path.empty() && path == canonical(other);
}

/// Returns whether an option of the run in `saved` had the default of its version. Older versions did not list changed
/// options; they recorded defaults without a value as null, and for other values it is unknown.
bool had_default(const OrderedJson& saved, const std::string& name) {
  if (saved[name].is_null()) return true;
  const OrderedJson program = saved.value(program_key, OrderedJson::object());
  if (!program.is_object() || !program.contains(changed_key)) return false;
  return std::ranges::none_of(program[changed_key], [&](const OrderedJson& each) { return each == name; });
}

}  // namespace

OrderedJson settings_json(const Command& command, const Arguments& arguments) {
  OrderedJson settings = OrderedJson::object();
  for (const Option& option : option_table(*arguments.task)) {
    if (has_option(command, option) && option.print) settings[option.name] = option.print(arguments);
  }
  return settings;
}

OrderedJson settings_for_any_ranks(const Command& command, const Arguments& arguments) {
  OrderedJson settings = settings_json(command, arguments);
  if (!arguments.batch_is_per_rank) return settings;
  const tasks::RunConfig& run = arguments.run;
  settings["batch-per-rank"] = run.task.batch / std::max<std::size_t>(run.engine.accumulation, 1);
  settings.erase("batch");
  return settings;
}

OrderedJson changed_options(const Command& command, const Arguments& arguments) {
  const OrderedJson settings = settings_json(command, arguments);
  const OrderedJson defaults = settings_json(command, default_arguments(command, *arguments.task));
  OrderedJson names = OrderedJson::array();
  for (const auto& [name, value] : settings.items()) {
    if (defaults[name] != value) names.push_back(name);
  }
  return names;
}

void read_config_file(const FileReader& files, const std::filesystem::path& file, const Command& command,
                      Arguments& arguments, std::vector<Setting>& settings) {
  const OrderedJson config = parse_object(files, file);
  for (const auto& [key, value] : config.items()) {
    if (normalized_name(key) == "recipe" && !value.is_null() && !config.contains(program_key)) {
      throw UsageError(
          fmt::format("{}: a recipe is named on the command line (--recipe), without --config", file.string()));
    }
    if (key == resolved_key) {
      read_gemm(value, file, arguments);
      read_attention(value, arguments);
      read_chat_time(value, arguments);
      read_layout(value, file, arguments);
    }
    if (key == program_key || key == resolved_key || key == train::OutputDirectory::state_key) continue;
    read_key(key, value, command, file, arguments, settings);
  }
}

std::vector<std::string> differing_settings(const OrderedJson& saved, const Command& command,
                                            const Arguments& arguments, std::span<const std::string_view> may_differ) {
  std::vector<std::string> differing;
  // Settings of different tasks are not compared. Older versions recorded no task.
  const std::string task(arguments.task->name());
  const std::string before_task = saved.value("task", std::string(tasks::default_task_kind().name()));
  if (before_task != task) return {fmt::format("task {}, now {}", before_task, task)};
  const OrderedJson settings = settings_json(command, arguments);
  const OrderedJson defaults = settings_json(command, default_arguments(command, *arguments.task));
  for (const auto& [name, value] : settings.items()) {
    // A version without this option behaved like its default.
    if (name == "output" || (!saved.contains(name) && !saved.contains(program_key))) continue;
    const OrderedJson& before = saved.contains(name) ? saved[name] : defaults[name];
    if (before == value) continue;
    if (std::ranges::find(may_differ, name) != may_differ.end()) continue;
    if (value == defaults[name] && had_default(saved, name)) continue;
    if (is_same_file(before, value)) continue;
    differing.push_back(fmt::format("{} {}, now {}", name, value_text(before), value_text(value)));
  }
  return differing;
}

void take_recorded_choices(const OrderedJson& saved, const std::filesystem::path& file, Arguments& arguments) {
  if (!saved.contains(resolved_key)) return;
  const OrderedJson& resolved = saved[resolved_key];
  train::GemmConfig& gemm = arguments.run.engine.gemm;
  const bool was_tf32 = saved.contains("tf32") && saved["tf32"] == true;
  if (!arguments.sources.was_given("gemm") && was_tf32 == gemm.tf32) {
    read_gemm(resolved, file, arguments);
    // A run that continues in another build, such as one for the CPU after one for GPUs, chooses again.
    if (gemm.recorded && !train::is_built(*gemm.recorded)) gemm.recorded.reset();
  }
  if (!arguments.sources.was_given("attention")) read_attention(resolved, arguments);
  read_chat_time(resolved, arguments);
  arguments.run.engine.recorded_layout.reset();
  // Options that a resumed run must have as before need no comparison.
  const bool is_as_saved = std::ranges::all_of(option_table(*arguments.task), [&](const Option& option) {
    if (!option.traits.lays_out || option.traits.on_resume == OnResume::same || !option.print) return true;
    return saved.value(option.name, OrderedJson()) == option.print(arguments);
  });
  if (is_as_saved) read_layout(resolved, file, arguments);
}

}  // namespace mylos::app
