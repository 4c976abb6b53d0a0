#include "app/program/manual.hpp"

#include "app/options/commands.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace mylos::app {
namespace {

/// Returns "--max-length" in roff syntax.
std::string roff_name(const std::string& name) {
  std::string text = "\\-\\-";
  for (const char c : name) text += c == '-' ? "\\-" : std::string(1, c);
  return text;
}

TEST(Manual, EveryOptionOfEveryCommandIsThere) {
  const std::string page = manual_page();
  EXPECT_TRUE(page.starts_with(".TH MYLOS 1 "));
  for (const Command& command : commands()) {
    const std::size_t begin = page.find("\n.SS " + std::string(command.name) + "\n");
    ASSERT_NE(begin, std::string::npos) << command.name;
    const std::string part = page.substr(begin, page.find("\n.S", begin + 1) - begin);
    for (const Option& option : option_table()) {
      EXPECT_EQ(part.find("\\fB" + roff_name(option.name) + "\\fR") != std::string::npos, has_option(command, option))
          << command.name << " " << option.name;
    }
  }
}

TEST(Manual, NoLineIsTakenForAMacro) {
  std::istringstream lines(manual_page());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.')) {
      EXPECT_TRUE(line == ".PP" || line == ".TP" || line == ".br" || line.starts_with(".SH ") ||
                  line.starts_with(".SS ") || line.starts_with(".TH ") || line.starts_with(".B "))
          << line;
    }
    EXPECT_FALSE(line.starts_with('\'')) << line;
  }
}

TEST(Completion, HasTheOptionsOfEachCommand) {
  const std::string script = bash_completion();
  for (const Command& command : commands()) {
    const std::size_t begin = script.find("\n    " + std::string(command.name) + ")\n");
    ASSERT_NE(begin, std::string::npos) << command.name;
    const std::string part = script.substr(begin, script.find(";;", begin) - begin);
    for (const Option& option : option_table()) {
      const bool there = part.find("--" + option.name + " ") != std::string::npos;
      EXPECT_EQ(there, has_option(command, option)) << command.name << " " << option.name;
    }
  }
  EXPECT_NE(script.find("words=\"gemm step batch tokenize collectives\""), std::string::npos);
}

TEST(Completion, OffersTheValuesOfOptionsThatTakeOneOfAFew) {
  const std::string script = bash_completion();
  for (const Option& option : option_table()) {
    SCOPED_TRACE(option.name);
    const bool there = script.find("\n    --" + option.name + ") values=") != std::string::npos ||
                       script.find("\n    --" + option.name + "|--") != std::string::npos;
    EXPECT_EQ(there, !option.choices.empty());
    if (!option.parse) continue;  // a peer's, whose values are translated before any is parsed
    for (const std::string& choice : option.choices) {
      Arguments arguments;
      EXPECT_TRUE(option.parse(arguments, choice)) << choice;
    }
  }
  for (const char* name : {"precision", "schedule", "best-by", "mode", "gemm", "attention", "recompute", "communicator",
                           "communication-precision", "on-save-error", "squad", "dataset", "gpu", "job", "shapes"}) {
    EXPECT_FALSE(find_option(name)->choices.empty()) << name;
  }
}

}  // namespace
}  // namespace mylos::app
