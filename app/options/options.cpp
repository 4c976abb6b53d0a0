#include "app/options/options.hpp"

#include "app/options/peer_options.hpp"
#include "app/options/plan_options.hpp"
#include "app/options/tool_options.hpp"
#include "app/options/train_options.hpp"
#include "core/base/error.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace mylos::app {
namespace {

std::vector<Option> options_of_task(const tasks::TaskKind& task) {
  std::vector<Option> options;
  for (const auto& option : task.options()) {
    options.push_back(option_of_whole<Arguments>(
        option, [](auto& arguments) -> auto& { return arguments.run; }));
    options.back().is_of_task = true;
  }
  return options;
}

/// Adds a peer's name to the option that it stands for, or lists it behind that.
void add_peer(const PeerOption& peer, bool is_of_task, std::vector<Option>& all) {
  const auto meant = std::ranges::find(all, peer.option, &Option::name);
  require(meant != all.end(), fmt::format("a peer's option means --{}, which is not there", peer.option));
  const auto is_known = [&](const Option& option) { return option.is_called(peer.name); };
  if (peer.is_alias()) {
    if (std::ranges::none_of(all, is_known)) meant->aliases.emplace_back(peer.name);
    return;
  }
  std::string help(peer.help);
  if (help.empty()) help = fmt::format("the same as --{} {}", peer.option, peer.value);
  const std::size_t part = peer.commands.find('/');
  if (part != std::string_view::npos) help = fmt::format("with {}: {}", peer.commands.substr(part + 1), help);
  if (const auto listed = std::ranges::find_if(all, is_known); listed != all.end()) {
    listed->commands += fmt::format(" {}", peer.commands);
    listed->command_help.push_back({peer.commands, help});
    return;
  }
  Option row = named(std::string(peer.name), std::string(peer.placeholder), meant->section, peer.commands, help);
  if (!peer.is_switch) row.command_help = meant->command_help;
  row.expects = peer.is_switch ? "nothing, true or false" : meant->expects;
  if (!peer.values.empty()) {
    std::vector<Choice> choices;
    for (const std::string& value : split(peer.values, ',')) choices.push_back({value, {}});
    row.expects = describe(choices);
    row.choices = names_of(choices);
  }
  row.is_of_task = is_of_task;
  all.insert(meant + 1, std::move(row));
}

std::vector<Option> make_table(const tasks::TaskKind& task) {
  std::vector<Option> all;
  for (std::vector<Option> part : {data_options(task), options_of_task(task), training_options(task), rank_options(),
                                   process_options(), plan_options(), tool_options(task)}) {
    std::ranges::move(part, std::back_inserter(all));
  }
  const std::vector<PeerOption> peers = peer_options(task);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const bool is_of_task = i + task.peer_options().size() >= peers.size();
    if (!peers[i].option.empty()) add_peer(peers[i], is_of_task, all);
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
  std::ranges::copy_if(option_table(task), std::back_inserter(options), &Option::is_of_task);
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
  throw UsageError(
      fmt::format("{} {} has no --{}; leave it out", command, part, arguments.sources.spelling(option->name)));
}

void refuse_option_of_other_tasks(std::string_view name, std::string_view shown, const tasks::TaskKind& task) {
  const std::string normal = normalized_name(name);
  std::vector<Choice> others;
  for (const tasks::TaskKind* other : tasks::task_kinds()) {
    const auto options = own_options(*other);
    if (other != &task && find_called(options, normal) != options.end()) others.push_back({std::string(other->name())});
  }
  if (others.empty()) return;
  throw TaskError(
      fmt::format("{} belongs to --task {}, and this is a run of {}", shown, describe(others), task.title()));
}

}  // namespace mylos::app
