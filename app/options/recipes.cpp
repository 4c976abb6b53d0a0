#include "app/options/recipes.hpp"

#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/options/peer_options.hpp"
#include "app/options/task_choice.hpp"
#include "app/options/train_options.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mylos::app {
namespace {

constexpr std::string_view listing = "list";  // --recipe list
using tasks::Recipe;

/// A recipe and the only task that it trains.
struct TaskRecipe {
  const tasks::TaskKind* task = nullptr;
  const Recipe* recipe = nullptr;
};

std::vector<TaskRecipe> all_recipes() {
  std::vector<TaskRecipe> all;
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    for (const Recipe& recipe : task->recipes()) all.push_back({task, &recipe});
  }
  return all;
}

/// Returns null pointers if there is none.
TaskRecipe find_recipe(std::string_view name) {
  for (const TaskRecipe& each : all_recipes()) {
    if (each.recipe->name == name) return each;
  }
  return {};
}

/// Calls `use` with the option and the value of each setting.
template <class Use>
void for_each_setting(const Recipe& recipe, const tasks::TaskKind& task, const Use& use) {
  const std::vector<std::string> words = split(recipe.settings, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Option& option = *find_option(words[i].substr(2), task);
    use(option, option.is_switch() ? "true" : words[++i]);
  }
}

bool excludes(const Option& one, const Option& other) {
  const std::vector<std::string> names = split(one.traits.excludes, ' ');
  return std::ranges::find(names, other.name) != names.end();
}

/// Returns whether an option on the command line excludes this one.
bool is_excluded(const Option& option, const Arguments& arguments) {
  return std::ranges::any_of(option_table(*arguments.task), [&](const Option& other) {
    return arguments.sources.was_given(other.name) && (excludes(other, option) || excludes(option, other));
  });
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const TaskRecipe& each : all_recipes()) names.emplace_back(each.recipe->name);
  names.emplace_back(listing);
  return names;
}

const tasks::TaskKind* task_of_recipe(std::string_view name) { return find_recipe(name).task; }

bool asks_for_recipes(std::span<const std::string> words) { return typed_value_of(words, "recipe") == listing; }

std::string list_of_recipes() {
  std::string text;
  for (const TaskRecipe& each : all_recipes()) {
    const Recipe& recipe = *each.recipe;
    text += fmt::format("{}: {}\n  {}\n", recipe.name, recipe.origin, recipe.settings);
    if (!recipe.differs.empty()) text += fmt::format("  differs: {}\n", recipe.differs);
  }
  return text;
}

void add_recipe(std::string_view name, const Command& command, const tasks::TaskKind& task, Settings& settings) {
  const auto [task_of_it, recipe] = find_recipe(name);
  if (recipe == nullptr) {
    throw UsageError(fmt::format("--recipe {}: there is no such recipe{} (mylos train --recipe list)", printable(name),
                                 suggestion(name, recipe_names(), "")));
  }
  if (task_of_it != &task) {
    throw UsageError(fmt::format("--recipe {} belongs to --task {}, and this is a run of {}", name, task_of_it->name(),
                                 task.title()));
  }
  for_each_setting(*recipe, task, [&](const Option& option, const std::string& value) {
    const auto sets = [&](const Setting& each) { return each.is_about(option.name); };
    if (std::ranges::any_of(settings.typed, sets) || !has_option(command, option)) return;
    settings.configured.push_back({&option, value, fmt::format("--recipe {}: {}", name, option.name),
                                   find_peer_option(option.name, command, task)});
  });
}

void say_recipe(Arguments& arguments) {
  const Recipe& recipe = *find_recipe(arguments.train->recipe).recipe;
  std::string taken;
  for_each_setting(recipe, *arguments.task, [&](const Option& option, const std::string& value) {
    const OptionSources& sources = arguments.sources;
    const bool is_spelling = std::ranges::any_of(sources.spellings, [&](const auto& each) {
      return each.second == option.name && !sources.was_given(each.first);
    });
    const bool is_taken = !lacks_needed(option, arguments) && (is_spelling || sources.was_configured(option.name));
    if (!is_taken || is_excluded(option, arguments)) return;
    taken += fmt::format(" --{}{}", option.name, option.is_switch() ? "" : " " + value);
  });
  arguments.remarks.push_back(fmt::format("--recipe {} sets{}", recipe.name, taken));
  if (!recipe.differs.empty()) arguments.remarks.push_back(fmt::format("--recipe {}: {}", recipe.name, recipe.differs));
}

}  // namespace mylos::app
