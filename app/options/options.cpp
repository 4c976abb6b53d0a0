#include "app/options/options.hpp"

#include "core/base/error.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace mylos::app {
namespace {

std::vector<Option> make_table(const tasks::TaskKind& task) {
  std::vector<Option> all;
  for (std::vector<Option> part : {data_options(task), own_options(task), training_options(task), rank_options(),
                                   plan_options(), tool_options(task)}) {
    std::ranges::move(part, std::back_inserter(all));
  }
  for (const auto& [name, alias] : task.aliases()) {
    const auto option = std::ranges::find(all, name, &Option::name);
    require(option != all.end(), fmt::format("an alias of --{}, which is not there", name));
    option->aliases.emplace_back(alias);
  }
  return all;
}

template <class Table>
auto find_called(const Table& table, const std::string& name) {
  return std::ranges::find_if(table, [&](const auto& option) { return option.is_called(name); });
}

}  // namespace

const std::vector<Option>& option_table(const tasks::TaskKind& task) {
  // The number of registered tasks is part of the key, because --task offers them as choices.
  static std::map<std::pair<const tasks::TaskKind*, std::size_t>, std::vector<Option>> tables;
  const std::pair key(&task, tasks::task_kinds().size());
  const auto known = tables.find(key);
  return known != tables.end() ? known->second : tables.emplace(key, make_table(task)).first->second;
}

std::vector<Option> own_options(const tasks::TaskKind& task) {
  std::vector<Option> options;
  for (const auto& option : task.options()) {
    options.push_back(option_of_whole<Arguments>(
        option, [](auto& arguments) -> auto& { return arguments.run; }));
  }
  return options;
}

std::string normalized_name(std::string_view name) {
  std::string normal(name);
  std::ranges::replace(normal, '_', '-');
  return normal;
}

const Option* find_option(std::string_view name, const tasks::TaskKind& task) {
  const std::vector<Option>& table = option_table(task);
  const auto found = find_called(table, normalized_name(name));
  return found == table.end() ? nullptr : &*found;
}

bool lacks_needed(const Option& option, const Arguments& arguments) {
  const OptionNeed& need = option.traits.needs;
  const auto value_of = [&](std::string_view name) { return find_option(name, *arguments.task)->print(arguments); };
  if (need.option.empty() || !need.choice.empty() || !value_of(need.option).is_null()) return false;
  return need.unless.option.empty() || value_of(need.unless.option) != need.unless.value;
}

const Option* given_without(std::string_view name, const Arguments& arguments) {
  const std::vector<Option>& table = option_table(*arguments.task);
  const auto found = std::ranges::find_if(table, [&](const Option& option) {
    return arguments.sources.was_given(option.name) && !option.belongs_to(name);
  });
  return found == table.end() ? nullptr : &*found;
}

void check_options_of(std::string_view command, std::string_view part, const Arguments& arguments) {
  const Option* option = given_without(fmt::format("{}/{}", command, part), arguments);
  if (option == nullptr) return;
  throw UsageError(fmt::format("{} {} has no --{}; leave it out", command, part, option->name));
}

const tasks::TaskKind* other_task_with(std::string_view name, const tasks::TaskKind& task) {
  const std::string normal = normalized_name(name);
  for (const tasks::TaskKind* other : tasks::task_kinds()) {
    const auto options = other->options();
    if (other != &task && find_called(options, normal) != options.end()) return other;
  }
  return nullptr;
}

}  // namespace mylos::app
