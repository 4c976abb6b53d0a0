#include "app/program/help.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace mylos::app {
namespace {

TEST(Help, EveryOptionOfACommandIsThereWithDefaultAndAliases) {
  for (const Command& command : commands()) {
    const std::string help = command_help(command);
    EXPECT_TRUE(help.starts_with("usage: mylos " + std::string(command.name)));
    for (const Option& option : option_table()) {
      if (!has_option(command, option)) continue;
      EXPECT_NE(help.find("--" + option.name), std::string::npos) << command.name << " " << option.name;
    }
  }
  const std::string train = command_help(*find_command("train"));
  EXPECT_NE(command_help(*find_command("ask")).find("[15]"), std::string::npos);
  for (const char* text : {"[3e-5]", "[12]", "[384]", "[128]", "[linear]", "[float]", "[42]", "--lr)", "--deepspeed"}) {
    const bool expected = std::string(text) != "--deepspeed";
    EXPECT_EQ(train.find(text) != std::string::npos, expected) << text;
  }
}

TEST(Help, AnOptionIsDescribedForTheCommand) {
  const auto shows = [](const char* command, const char* text) {
    return command_help(*find_command(command)).find(text) != std::string::npos;
  };
  EXPECT_TRUE(shows("report", "output file; default: report.html"));
  EXPECT_FALSE(shows("train", "report.html"));
  EXPECT_TRUE(shows("train", "directory for the results"));
  EXPECT_FALSE(shows("report", "directory for the results"));
  EXPECT_TRUE(shows("watch", "print JSON and exit"));
  EXPECT_FALSE(shows("info", "print JSON and exit"));
}

TEST(Help, LinesFitATerminal) {
  for (const Command& command : commands()) {
    std::istringstream lines(command_help(command));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110u) << line;
  }
}

TEST(Help, TheProgramListsItsCommands) {
  const std::string help = program_help();
  for (const Command& command : commands()) {
    EXPECT_NE(help.find("\n  " + std::string(command.name) + " "), std::string::npos) << command.name;
  }
}

}  // namespace
}  // namespace mylos::app
