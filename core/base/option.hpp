#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A command-line option, as an entry of the table from which parsing, --help, run.json and --config are derived.
namespace mylos {

/// Bits of the commands that accept an option.
enum CommandBit : unsigned {
  train_command = 1,
  eval_command = 2,
  ask_command = 4,
  score_command = 8,
  tokenize_command = 16,
  prepare_command = 32,
  info_command = 64,
  bench_command = 128,
  checkpoint_command = 256,
  plan_command = 512,
  compare_command = 1024,
  watch_command = 2048,
  doctor_command = 4096,
  report_command = 8192,
  generate_command = 16384,
  classify_command = 32768,
};

/// A description of an option in the help of some commands.
struct CommandHelp {
  unsigned commands = 0;  ///< bitwise or of CommandBits
  std::string text;
};

/// An option that sets a field of `Target`. core/base/option_kinds.hpp creates the usual kinds.
template <class Target>
struct Option {
  std::string name;                  ///< "learning-rate"; users may type _ for -
  std::vector<std::string> aliases;  ///< names in other programs, such as "lr"
  std::string placeholder;           ///< the value in the help, such as "X"; empty for a switch
  std::string_view section;          ///< section of the help
  unsigned commands = 0;             ///< bitwise or of CommandBits
  std::string help;                  ///< description with the unit
  std::string expects = {};          ///< description of valid values: "a whole number from 1 to 512"
  /// Stores the parsed value in the target. Returns false, leaving the target unchanged, if the text is invalid.
  std::function<bool(Target&, std::string_view)> parse = {};
  /// Returns the value for run.json, null if it is unset. Empty if the option is not a setting of the run.
  std::function<nlohmann::ordered_json(const Target&)> print = {};
  std::string alone = {};                      ///< value if the option is given alone; empty if a value is required
  std::vector<std::string> choices = {};       ///< the words among its values, for completion
  bool is_derived = false;                     ///< default depends on other options: not shown in the help
  std::vector<CommandHelp> command_help = {};  ///< replaces `help` in some commands

  bool is_switch() const { return placeholder.empty(); }
  bool belongs_to(unsigned command) const { return (commands & command) != 0; }
  /// Returns the description in the help of `command`.
  const std::string& help_for(unsigned command) const {
    const auto special = std::ranges::find_if(
        command_help, [command](const CommandHelp& each) { return (each.commands & command) != 0; });
    return special == command_help.end() ? help : special->text;
  }
  /// Returns whether `text` is the option's name or an alias, with - for _.
  bool is_called(std::string_view text) const {
    return name == text || std::ranges::find(aliases, text) != aliases.end();
  }
};

/// Converts an option of a part to one of the whole. `part` returns the part: [](auto& whole) -> auto& { return
/// whole.part; }.
template <class Whole, class Part, class Finder>
Option<Whole> option_of_whole(const Option<Part>& option, Finder part) {
  Option<Whole> whole{option.name,
                      option.aliases,
                      option.placeholder,
                      option.section,
                      option.commands,
                      option.help,
                      option.expects,
                      {},
                      {},
                      option.alone,
                      option.choices,
                      option.is_derived,
                      option.command_help};
  whole.parse = [parse = option.parse, part](Whole& target, std::string_view text) {
    return parse(part(target), text);
  };
  if (option.print) {
    whole.print = [print = option.print, part](const Whole& target) { return print(part(target)); };
  }
  return whole;
}

/// The source of each option that was set, by name.
struct OptionSources {
  std::set<std::string, std::less<>> given = {};       ///< set on the command line
  std::set<std::string, std::less<>> configured = {};  ///< set in the --config file

  bool was_given(std::string_view name) const { return given.contains(name); }
  bool was_configured(std::string_view name) const { return configured.contains(name); }
  /// Returns whether `name` is set only in the configuration file and the command line overrides it by `other`, which
  /// excludes it.
  bool is_overridden(std::string_view name, std::string_view other) const {
    return !was_given(name) && was_given(other);
  }
  /// Rejects two mutually exclusive settings if both are on the command line, or both only in the configuration file.
  /// Errors: UsageError naming both.
  void exclude(std::string_view one, std::string_view other) const;
};

}  // namespace mylos
