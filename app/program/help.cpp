#include "app/program/help.hpp"

#include "app/options/parse.hpp"
#include "core/base/files/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <vector>

namespace mylos::app {
namespace {

constexpr std::size_t text_column = 30, line_width = 100;

/// Returns `text` wrapped between words, starting at `text_column`.
std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string result, word;
  std::size_t column = text_column;
  while (words >> word) {
    if (column > text_column && column + 1 + word.size() > line_width) {
      result += "\n" + std::string(text_column, ' ');
      column = text_column;
    } else if (column > text_column) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

/// Returns a row with "left" in the first column and the text in the second, on a new line if left is too long.
std::string row(const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  line += line.size() + 2 > text_column ? "\n" + std::string(text_column, ' ')
                                        : std::string(text_column - line.size(), ' ');
  return line + wrapped(text) + "\n";
}

/// Returns the default as text, with 3e-05 written as "3e-5".
std::string default_text(const nlohmann::ordered_json& value) {
  if (value.is_null() || value == false) return "";
  std::string text = plain_text(value);
  if (const std::size_t exponent = text.find("e-0"); exponent != std::string::npos) text.erase(exponent + 2, 1);
  if (text.ends_with(".0")) text.erase(text.size() - 2);
  return text;
}

}  // namespace

std::vector<std::string_view> option_sections(const Command& command, const tasks::TaskKind& task) {
  std::vector<std::string_view> sections;
  for (const Option& option : option_table(task)) {
    const bool is_new = std::ranges::find(sections, option.section) == sections.end();
    if (has_option(command, option) && is_new) sections.push_back(option.section);
  }
  return sections;
}

std::string option_text(const Option& option, const Command& command, const Arguments& defaults) {
  std::string text = option.help_for(command.name);
  const std::string value = option.print && !option.is_derived ? default_text(option.print(defaults)) : "";
  if (!value.empty()) text += fmt::format(" [{}]", value);
  for (std::size_t i = 0; i < option.aliases.size(); ++i) {
    text += fmt::format("{}--{}{}", i == 0 ? " (also " : ", ", option.aliases[i],
                        i + 1 == option.aliases.size() ? ")" : "");
  }
  return text;
}

std::string sentence(std::string_view text) {
  std::string result(text);
  result.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(result.front())));
  return result;
}

std::string program_help() {
  std::string text = "usage: mylos COMMAND [options]\n\nFine-tunes transformers and answers questions with them.\n\n";
  for (const Command& command : commands()) text += row(std::string(command.name), std::string(command.summary));
  return text +
         "\nmylos COMMAND --help describes a command; mylos --version prints the version.\n"
         "mylos help --man prints a manual page; mylos help --bash prints a completion script.\n";
}

std::string command_help(const Command& command, const tasks::TaskKind& task) {
  const Arguments defaults = default_arguments(command, task);
  std::string text =
      fmt::format("usage: mylos {} {}\n\n{}.\n", command.name, command.arguments, sentence(command.summary));
  for (const std::string_view section : option_sections(command, task)) {
    text += fmt::format("\n{}:\n", section);
    for (const Option& option : option_table(task)) {
      if (!has_option(command, option) || option.section != section) continue;
      const std::string name = option.is_switch() ? option.name : option.name + " " + option.placeholder;
      text += row("--" + name, option_text(option, command, defaults));
    }
  }
  return text;
}

}  // namespace mylos::app
