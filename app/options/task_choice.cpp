#include "app/options/task_choice.hpp"

#include "app/options/options.hpp"
#include "app/options/recipes.hpp"
#include "app/options/words.hpp"
#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"

#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Returns the members of a configuration; an empty object if it cannot be read.
OrderedJson read_settings(const FileReader& files, const std::string& file) {
  std::error_code unreadable;
  if (file.empty() || !std::filesystem::is_regular_file(file, unreadable)) return OrderedJson::object();
  try {
    OrderedJson settings = try_parse_ordered_json(files.read_text(file));
    return settings.is_object() ? settings : OrderedJson::object();
  } catch (const std::runtime_error&) {
    return OrderedJson::object();
  }
}

std::string text_member(const OrderedJson& object, std::string_view name) {
  const Option& option = *find_option(name);
  for (const auto& [key, value] : object.items()) {
    if (value.is_string() && option.is_called(normalized_name(key))) return value.get<std::string>();
  }
  return {};
}

/// Returns the task that serves `model`, a directory or a name; null if none does. Errors: those of resolve_model.
const tasks::TaskKind* kind_of_named_model(const FileReader& files, const std::string& model) {
  std::error_code unreadable;
  const bool is_directory = std::filesystem::is_directory(model, unreadable);
  const tasks::TaskKind* known = is_directory ? nullptr : tasks::kind_of_known_model(model);
  return known != nullptr ? known : tasks::kind_of_model(files, families::resolve_model(files, model, false));
}

/// Returns the task that the command, --task or the configuration `settings` names; null if none does.
const tasks::TaskKind* named_task(const Command& command, std::span<const std::string> words,
                                  const OrderedJson& settings) {
  if (!command.task.empty()) {
    const tasks::TaskKind* only = tasks::find_task_kind(command.task);
    require(only != nullptr, "choose_task: a command of a task that is not in the table");
    return only;
  }
  const tasks::TaskKind* typed = tasks::find_task_kind(typed_value_of(words, "task"));
  return typed != nullptr ? typed : tasks::find_task_kind(text_member(settings, "task"));
}

/// Returns the model of --model or, without it, of the configuration; empty if neither names one.
std::string named_model(std::span<const std::string> words, const OrderedJson& settings) {
  const std::string typed = typed_value_of(words, "model");
  return typed.empty() ? text_member(settings, "model") : typed;
}

}  // namespace

std::string typed_value_of(std::span<const std::string> words, std::string_view name) {
  std::set<std::string, std::less<>> known{std::string(name)};
  for (const tasks::TaskKind* kind : tasks::task_kinds()) {
    const std::vector<std::string>& aliases = find_option(name, *kind)->aliases;
    known.insert(aliases.begin(), aliases.end());
  }
  std::vector<OptionName> names;
  for (const std::string& each : known) names.push_back({each});
  std::string value;
  for (const ReadOption& read : read_words(names, words, TruthWords::positional).options) {
    if (read.value) value = *read.value;
  }
  return value;
}

void check_named_model(const FileReader& files, const Command& command, std::span<const std::string> words) {
  const OrderedJson settings = read_settings(files, typed_value_of(words, "config"));
  const std::string model = named_model(words, settings);
  if (model.empty() || named_task(command, words, settings) != nullptr) return;
  if (kind_of_named_model(files, model) == nullptr) {
    families::find_model_family(files, families::resolve_model(files, model, false));
  }
}

const tasks::TaskKind& choose_task(const FileReader& files, const Command& command,
                                   std::span<const std::string> words) {
  const OrderedJson settings = read_settings(files, typed_value_of(words, "config"));
  if (const tasks::TaskKind* named = named_task(command, words, settings)) return *named;
  try {
    const std::string model = named_model(words, settings);
    const tasks::TaskKind* kind = model.empty() ? nullptr : kind_of_named_model(files, model);
    if (kind != nullptr) return *kind;
  } catch (const std::runtime_error&) {  // check_named_model reports it where the task matters
  }
  const tasks::TaskKind* of_recipe = task_of_recipe(typed_value_of(words, "recipe"));
  return of_recipe != nullptr ? *of_recipe : tasks::default_task_kind();
}

double collective_timeout_in(std::span<const std::string> words) {
  constexpr std::string_view name = "collective-timeout";
  Arguments arguments;
  find_option(name)->parse(arguments, typed_value_of(words, name));
  return arguments.collective_timeout;
}

}  // namespace mylos::app
