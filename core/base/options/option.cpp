#include "core/base/options/option.hpp"

#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos {

bool names_command(std::string_view commands, std::string_view command) {
  const auto is_whole_or_part = [](std::string_view whole, std::string_view part) {
    return part == whole || (part.starts_with(whole) && part[whole.size()] == '/');
  };
  while (!commands.empty()) {
    const std::size_t end = std::min(commands.find(' '), commands.size());
    const std::string_view name = commands.substr(0, end);
    if (!name.empty() && (is_whole_or_part(name, command) || is_whole_or_part(command, name))) return true;
    commands.remove_prefix(std::min(end + 1, commands.size()));
  }
  return false;
}

const std::string& OptionRow::help_for(std::string_view command) const {
  const auto special = std::ranges::find_if(
      command_help, [command](const CommandHelp& each) { return names_command(each.commands, command); });
  return special == command_help.end() ? help : special->text;
}

bool OptionRow::is_called(std::string_view text) const {
  return name == text || std::ranges::find(aliases, text) != aliases.end();
}

std::string_view OptionSources::spelling(std::string_view name) const {
  const auto found = spellings.find(name);
  return found == spellings.end() ? name : std::string_view(found->second);
}

void OptionSources::exclude(std::string_view one, std::string_view other) const {
  const bool one_given = was_given(one), other_given = was_given(other);
  if (one_given && other_given) refuse_both(spelling(one), spelling(other), true);
  if (one_given || other_given) return;
  if (was_configured(one) && was_configured(other)) refuse_both(spelling(one), spelling(other), false);
}

void refuse_both(std::string_view one, std::string_view other, bool is_typed) {
  if (is_typed) throw UsageError(fmt::format("--{} and --{} exclude each other; give one of them", one, other));
  throw UsageError(fmt::format("{} and {} exclude each other; leave one of them out of the configuration", one, other));
}

}  // namespace mylos
