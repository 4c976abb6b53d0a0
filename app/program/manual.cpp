#include "app/program/manual.hpp"

#include "app/options/parse.hpp"
#include "app/program/build_info.hpp"
#include "app/program/help.hpp"
#include "core/base/options/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

/// Escapes `text` for roff; hyphens remain characters that can be searched and copied.
std::string roff(std::string_view text) {
  std::string result;
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) result = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

/// Returns the entry of "--batch N" with the name in bold and the placeholder in italics.
std::string option_entry(const Option& option, const std::string& text) {
  const std::string value = option.is_switch() ? "" : fmt::format(" \\fI{}\\fR", roff(option.placeholder));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff("--" + option.name), value, roff(text));
}

/// Returns the entries of options that a command has only for other tasks than the default.
std::string other_task_entries(const Command& command) {
  std::string page;
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    if (task == &tasks::default_task_kind() || !command.task.empty()) continue;
    const Arguments defaults = default_arguments(command, *task);
    std::string entries;
    for (const Option& option : own_options(*task)) {
      if (has_option(command, option)) entries += option_entry(option, option_text(option, command, defaults));
    }
    if (!entries.empty())
      page += fmt::format(".PP\nWith {}:\n{}", roff(fmt::format("--task {}", task->name())), entries);
  }
  return page;
}

std::string command_entry(const Command& command) {
  std::string page = fmt::format(".SS {}\n\\fBmylos {}\\fR {}\n.PP\n{}.\n", command.name, command.name,
                                 roff(command.arguments), roff(sentence(command.summary)));
  const Arguments defaults = default_arguments(command);
  for (const std::string_view section : option_sections(command)) {
    page += fmt::format(".PP\n{}:\n", roff(section));
    for (const Option& option : option_table()) {
      if (!has_option(command, option) || option.section != section) continue;
      page += option_entry(option, option_text(option, command, defaults));
    }
  }
  return page + other_task_entries(command);
}

/// Returns the choices for a command's first argument: "gemm|step ..." has two.
std::vector<std::string> first_words(const Command& command) {
  const std::string_view first = command.arguments.substr(0, command.arguments.find(' '));
  return first.find('|') == std::string_view::npos ? std::vector<std::string>() : split(first, '|');
}

constexpr const char* exit_status = R"(.SH EXIT STATUS
.TP
0
Success.
.TP
1
An error, which standard error describes in one line.
.TP
2
The command line is wrong.
.TP
85, 130, 143
.B mylos train
wrote a checkpoint and ended because of SIGUSR1, SIGINT or SIGTERM; 85 also if the job's time limit was near. The same
command continues the run.
)";

/// Returns the option and its aliases as a case pattern of bash: "--schedule|--lr-scheduler-type".
std::string name_pattern(const Option& option) {
  std::string pattern = "--" + option.name;
  for (const std::string& alias : option.aliases) pattern += "|--" + alias;
  return pattern;
}

/// Returns the options of all tasks, without duplicate names.
std::vector<Option> options_of_all_tasks() {
  std::vector<Option> all = option_table();
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    for (Option& option : own_options(*task)) {
      const auto known = std::ranges::find(all, option.name, &Option::name);
      if (known == all.end()) {
        all.push_back(std::move(option));
        continue;
      }
      known->commands += " " + option.commands;
      for (std::string& choice : option.choices) {
        if (std::ranges::find(known->choices, choice) == known->choices.end()) known->choices.push_back(choice);
      }
    }
  }
  return all;
}

/// Returns a case for each option with a fixed set of values.
std::string value_cases(const std::vector<Option>& all) {
  std::string cases;
  for (const Option& option : all) {
    if (option.choices.empty()) continue;
    cases += fmt::format("    {}) values=\"{}\" ;;\n", name_pattern(option), fmt::join(option.choices, " "));
  }
  return cases;
}

}  // namespace

std::string manual_page() {
  std::string page = fmt::format(
      ".TH MYLOS 1 \"\" \"mylos {}\" \"User Commands\"\n.SH NAME\nmylos \\- fine\\-tunes transformers and answers "
      "questions with them\n.SH SYNOPSIS\n\\fBmylos\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.br\n\\fBmylos\\fR "
      "\\fICOMMAND\\fR \\fB\\-\\-help\\fR\n.br\n\\fBmylos \\-\\-version\\fR\n.SH DESCRIPTION\nAn option may be written "
      "with _ for \\-, and its value after a space or after =. Defaults stand in brackets.\n.SH COMMANDS\n",
      build_info().version);
  for (const Command& command : commands()) page += command_entry(command);
  return page + exit_status;
}

std::string bash_completion() {
  const std::vector<Option> all = options_of_all_tasks();
  std::string names, cases;
  for (const Command& command : commands()) {
    names += fmt::format("{} ", command.name);
    std::string options;
    for (const Option& option : all) {
      if (has_option(command, option)) options += fmt::format("--{} ", option.name);
    }
    cases += fmt::format("    {})\n      options=\"{}--help\"\n      words=\"{}\"\n      ;;\n", command.name, options,
                         fmt::join(first_words(command), " "));
  }
  return fmt::format(R"(# Completion of mylos' commands, options and their values, written by the program.
_mylos() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options='' words='' values=''
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{}help --help --version" -- "$word")
    return
  fi
  # bash takes the = of --precision=half for a word.
  if [ "$word" = = ]; then
    word=''
  elif [ "$before" = = ]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case ${{before//_/-}} in
{}  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [ -n "$values" ] && [[ $word != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [ "$COMP_CWORD" = 2 ] && [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
}}
complete -o default -F _mylos mylos
)",
                     names, value_cases(all), cases);
}

}  // namespace mylos::app
