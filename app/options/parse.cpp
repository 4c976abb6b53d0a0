#include "app/options/parse.hpp"

#include "app/options/config_file.hpp"
#include "app/options/consistency.hpp"
#include "app/options/peer_options.hpp"
#include "app/options/recipes.hpp"
#include "app/options/settings.hpp"
#include "app/options/task_choice.hpp"
#include "app/options/train_options.hpp"
#include "app/options/words.hpp"
#include "core/base/files/files.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

std::string commands_with(const Option& option) {
  std::string names;
  for (const Command& command : commands()) {
    if (has_option(command, option)) names += fmt::format("{}{}", names.empty() ? "" : ", ", command.name);
  }
  return names;
}

std::vector<std::string> option_names(const Command& command, const tasks::TaskKind& task) {
  std::vector<std::string> names{"help"};
  for (const Option& option : option_table(task)) {
    if (!has_option(command, option)) continue;
    names.push_back(option.name);
    names.insert(names.end(), option.aliases.begin(), option.aliases.end());
  }
  return names;
}

/// Throws an error that says why `command` has no option called `name` for runs of `task`.
[[noreturn]] void refuse_option(const Command& command, const tasks::TaskKind& task, const std::string& name) {
  if (const Option* option = find_option(name, task)) {
    const std::string& text = option->help_for(command.name);  // what the command takes instead
    throw UsageError(fmt::format("{} does not have --{}, which belongs to {}{}{}", command.name, name,
                                 commands_with(*option), text == option->help ? "" : "; ",
                                 text == option->help ? "" : text));
  }
  refuse_option_of_other_tasks(name, fmt::format("{}: --{}", command.name, name), task);
  const std::string normal = normalized_name(name);
  const std::vector<std::string> names = option_names(command, task);
  const std::string meant =
      command.trains() ? suggestion_with_peers(normal, names, "--", command, task) : suggestion(normal, names, "--");
  throw UsageError(fmt::format("{} does not have --{}{}", command.name, printable(name), meant));
}

/// The option that a name refers to: a row of the table, one of a peer, or both.
struct Meaning {
  const Option* option = nullptr;
  const PeerOption* peer = nullptr;
  bool is_denied = false;  ///< spelled --no-NAME, like Trainer's --no_dataloader_pin_memory

  bool is_switch() const { return option != nullptr ? option->is_switch() : peer->is_switch; }
  /// True also for secrets, which may follow a peer's switch: "--use_auth_token hf_...".
  bool takes_word() const { return !is_denied && (!is_switch() || (peer != nullptr && peer->is_secret)); }
};

/// Returns the names that `command` accepts for runs of `task`. Our names take precedence over those of peers.
std::map<std::string, Meaning> meanings_of(const Command& command, const tasks::TaskKind& task) {
  std::map<std::string, Meaning> meanings;
  const auto add = [&](const std::string& name, Meaning meaning) {
    meanings.emplace(name, meaning);
    if (meaning.is_switch()) meanings.emplace("no-" + name, Meaning{meaning.option, meaning.peer, true});
  };
  for (const std::string& name : option_names(command, task)) {
    if (name != "help") add(name, {find_option(name, task), find_peer_option(name, command, task)});
  }
  for (const PeerOption& peer : peer_options(task)) {
    const PeerOption* known = peer.option.empty() ? find_peer_option(peer.name, command, task) : nullptr;
    if (known != nullptr) add(std::string(peer.name), {nullptr, known});
  }
  return meanings;
}

/// Returns the value of an option typed as `read`. Errors: UsageError if a required value is missing.
std::string value_of(const Meaning& meaning, const ReadOption& read) {
  if (meaning.is_denied && read.value) throw UsageError(fmt::format("{} takes no value", read.typed));
  if (read.value) return *read.value;
  if (meaning.is_switch()) return meaning.is_denied ? "false" : "true";
  const bool is_ours = meaning.option != nullptr;
  if (!is_ours && meaning.peer->why.empty()) return "";  // refused with any value
  if (!is_ours) throw UsageError(fmt::format("{} needs a value", read.typed));
  if (!meaning.option->alone.empty()) return meaning.option->alone;
  throw UsageError(fmt::format("{} needs a value: {}", read.typed, meaning.option->expects));
}

/// Adds a setting to `settings`, or the remark on a peer's option without effect. Errors: UsageError.
void take_option(const Meaning& meaning, ReadOption& read, std::vector<Setting>& settings, Arguments& arguments) {
  const std::string value = value_of(meaning, read);
  if (meaning.option != nullptr) {
    settings.push_back({meaning.option, value, read.typed, meaning.peer});
    arguments.typed.push_back({meaning.option->name, std::move(read.words)});
    return;
  }
  const std::string remark = remark_on(*meaning.peer, read.typed, value);
  arguments.remarks.push_back(
      meaning.is_denied ? fmt::format("{} has no effect here: {}", read.typed, meaning.peer->why) : remark);
}

/// Adds the settings of the configurations, or of the recipe, on the command line.
void add_configured(const FileReader& files, const Command& command, Settings& settings, Arguments& arguments) {
  const Setting* recipe = nullptr;
  std::vector<const Setting*> configs;
  for (const Setting& each : settings.typed) {
    if (each.option->name == "recipe") recipe = &each;
    if (each.option->name == "config") configs.push_back(&each);
  }
  if (recipe != nullptr && !configs.empty()) refuse_both("recipe", "config", true);
  if (recipe != nullptr) add_recipe(recipe->value, command, *arguments.task, settings);
  for (const Setting* each : configs) {
    set_option(arguments, *each->option, each->value, each->shown);
    read_config_file(files, arguments.train->config, command, arguments, settings.configured);
  }
}

/// Returns the list among `typed` after whose value `words` have `more`; null if there is none.
const Setting* list_before(const std::string& more, const std::vector<Setting>& typed,
                           std::span<const std::string> words) {
  const auto found = std::ranges::find_if(typed, [&](const Setting& each) {
    const std::array sequence{each.shown, each.value, more};
    // clang 14 does not compile std::ranges::search for a span.
    return each.option->expects.find("separated by commas") != std::string::npos &&
           std::search(words.begin(), words.end(), sequence.begin(), sequence.end()) != words.end();
  });
  return found == typed.end() ? nullptr : &*found;
}

void check_positional(const Command& command, const std::vector<std::string>& positional,
                      const std::vector<Setting>& typed, std::span<const std::string> words) {
  if (positional.size() > command.most_positional) {
    const std::string& more = positional[command.most_positional];
    const Setting* list = list_before(more, typed, words);
    throw UsageError(fmt::format("{}: \"{}\" is one argument too many; {}", command.name, printable(more),
                                 list != nullptr ? fmt::format("a list is separated by commas: {} {},{}", list->shown,
                                                               printable(list->value), printable(more))
                                                 : fmt::format("usage: mylos {} {}", command.name, command.arguments)));
  }
  if (positional.size() < command.least_positional) {
    throw UsageError(
        fmt::format("{}: too few arguments; usage: mylos {} {}", command.name, command.name, command.arguments));
  }
}

/// Sets an option of the command line. Refuses invalid UTF-8 for commands whose options are recorded as JSON in
/// run.json.
void set_typed(const Command& command, const Setting& setting, Arguments& arguments) {
  const std::optional<std::size_t> wrong = command.trains() ? first_invalid_utf8(setting.value) : std::nullopt;
  if (wrong) {
    throw UsageError(fmt::format("{}: not UTF-8 at byte {}, so run.json cannot record it; rename the file or directory",
                                 setting.shown, *wrong));
  }
  set_option(arguments, *setting.option, setting.value, setting.shown);
  arguments.sources.given.insert(setting.option->name);
}

void set_all(const Command& command, const Settings& settings, Arguments& arguments) {
  for (const Setting& each : settings.configured) {
    set_option(arguments, *each.option, each.value, each.shown);
    arguments.sources.configured.insert(each.option->name);
  }
  arguments.sources.configured.insert(settings.left_out.begin(), settings.left_out.end());
  for (const Setting& each : settings.typed) set_typed(command, each, arguments);
  for (const std::vector<Setting>* list : {&settings.configured, &settings.typed}) {
    for (const Setting& each : *list) {
      arguments.sources.spellings.erase(each.option->name);
      if (each.peer != nullptr) arguments.sources.spellings.emplace(each.option->name, each.peer->name);
    }
  }
}

Arguments parse_for(const tasks::TaskKind& task, const FileReader& files, const Command& command,
                    std::span<const std::string> words) {
  const std::map<std::string, Meaning> meanings = meanings_of(command, task);
  std::vector<OptionName> names;
  for (const auto& [name, meaning] : meanings) names.push_back({name, meaning.takes_word()});
  const bool has_positional = command.most_positional > 0;
  ReadWords read = read_words(names, words, has_positional ? TruthWords::positional : TruthWords::values);
  Arguments arguments = default_arguments(command, task);
  arguments.help = read.help;
  if (read.help) return arguments;
  Settings settings;
  for (ReadOption& each : read.options) {
    const auto known = meanings.find(each.name);
    if (known == meanings.end()) refuse_option(command, task, each.typed.substr(2));
    take_option(known->second, each, settings.typed, arguments);
  }
  if (!read.dashed.empty()) {
    throw UsageError(
        fmt::format("{} does not have {}; options begin with --", command.name, printable(read.dashed.front())));
  }
  check_positional(command, read.positional, settings.typed, words);
  arguments.positional = std::move(read.positional);
  add_configured(files, command, settings, arguments);
  translate(settings, default_arguments(command, task), arguments.remarks);
  set_all(command, settings, arguments);
  resolve(command, arguments);
  if (arguments.sources.was_given("recipe")) say_recipe(arguments);
  return arguments;
}

}  // namespace

Arguments default_arguments(const Command& command, const tasks::TaskKind& task) {
  Arguments arguments;
  arguments.task = &task;
  arguments.run = tasks::default_run(task, command.name);
  arguments.run.engine.gemm.cache = data::cache_folder("gemm");
  arguments.run.task.attention_cache = data::cache_folder("attention");
  if (command.name == "doctor") arguments.collective_timeout = 60.0;
  return arguments;
}

std::string suggestion(std::string_view text, std::span<const std::string> names, std::string_view prefix) {
  const std::string nearest = nearest_name(text, names);
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

void refuse_value(std::string_view name, std::string_view text, std::string_view expects) {
  throw UsageError(fmt::format("{} {}: expected {}", name, text.empty() ? "\"\"" : printable(text), expects));
}

void set_option(Arguments& arguments, const Option& option, std::string_view text, std::string_view name) {
  if (!option.parse(arguments, text)) refuse_value(name, text, option.expects);
  if (!option.is_switch()) return;
  arguments.sources.switched_on.erase(option.name);
  if (*parse_truth(text)) arguments.sources.switched_on.insert(option.name);
}

Arguments parse_arguments(const FileReader& files, const Command& command, std::span<const std::string> words) {
  const tasks::TaskKind& task = choose_task(files, command, words);
  try {
    return parse_for(task, files, command, words);
  } catch (const TaskError&) {
    check_named_model(files, command, words);
    throw;
  }
}

}  // namespace mylos::app
