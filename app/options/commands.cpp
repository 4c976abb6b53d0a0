#include "app/options/commands.hpp"

#include "app/options/command_rows.hpp"

#include <algorithm>
#include <array>

namespace mylos::app {
namespace {

constexpr Command named_command(std::string_view name, Command command) {
  command.name = name;
  return command;
}

#define MYLOS_ROW(name, ...) named_command(#name, __VA_ARGS__),
constexpr std::array table = {MYLOS_COMMANDS(MYLOS_ROW)};
#undef MYLOS_ROW

}  // namespace

std::span<const Command> commands() { return table; }

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(table, name, &Command::name);
  return found == table.end() ? nullptr : found;
}

bool has_option(const Command& command, const OptionRow& option) {
  return option.belongs_to(command.name) || (!command.options_of.empty() && option.belongs_to(command.options_of));
}

}  // namespace mylos::app
