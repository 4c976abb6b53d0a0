#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"
#include "app/options/settings.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Recipes: the settings of programs that fine-tune the same models, under one name each (--recipe).
namespace mylos::app {

/// Returns the names of all recipes, and "list".
std::vector<std::string> recipe_names();

/// Returns the task of the recipe called `name`; null if there is none.
const tasks::TaskKind* task_of_recipe(std::string_view name);

/// Returns whether the words of a command line ask for the list of recipes.
bool asks_for_recipes(std::span<const std::string> words);

/// Returns the list of recipes with their settings.
std::string list_of_recipes();

/// Adds the settings of the recipe to the configured ones, without those that `command` lacks, and those that the
/// command line sets. Errors: UsageError if the recipe is unknown or not of `task`.
void add_recipe(std::string_view name, const Command& command, const tasks::TaskKind& task, Settings& settings);

/// Adds a remark with what the recipe has set, once options are resolved, and one with what differs.
void say_recipe(Arguments& arguments);

}  // namespace mylos::app
