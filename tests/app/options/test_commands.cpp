#include "app/options/commands.hpp"

#include "app/options/options.hpp"
#include "core/base/option_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::app {
namespace {

/// A row names other rows as words, which the compiler does not check.
TEST(Commands, RowsNameCommandsAndOptionsThatExist) {
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    for (const Option& option : option_table(*task)) {
      for (const std::string& name : split(option.commands, ' ')) {
        EXPECT_NE(find_command(name.substr(0, name.find('/'))), nullptr) << option.name << ": " << name;
      }
      for (const CommandHelp& each : option.command_help) {
        for (const std::string& name : split(each.commands, ' ')) EXPECT_NE(find_command(name), nullptr) << option.name;
      }
      const auto& [needed, choice, why] = option.traits.needs;
      const Option* other = needed.empty() ? nullptr : find_option(needed, *task);
      EXPECT_EQ(other == nullptr, needed.empty()) << option.name;
      if (!choice.empty())
        EXPECT_TRUE(std::ranges::find(other->choices, choice) != other->choices.end()) << option.name;
      if (!choice.empty()) EXPECT_TRUE(option.copy) << option.name;
      if (option.means.option.empty()) continue;
      Arguments arguments;
      EXPECT_TRUE(find_option(option.means.option, *task)->parse(arguments, option.means.value)) << option.name;
    }
  }
  for (const Command& command : commands()) {
    for (const std::string_view names : {command.needs, command.options}) {
      for (const std::string& name : names.empty() ? std::vector<std::string>() : split(names, ' ')) {
        const Option* option = find_option(name);
        ASSERT_NE(option, nullptr) << name;
        EXPECT_TRUE(has_option(command, *option)) << command.name << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace mylos::app
