#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A command-line option, as an entry of the table from which parsing, --help, run.json and --config are derived.
namespace mylos {

/// Returns whether `commands`, names separated by spaces, contains `command`. A row with "bench" belongs to all
/// benchmarks, one with "bench/step" only to that one, and one with "bench/batch/plan" to a part of that. "bench"
/// itself has the options of all its parts.
bool names_command(std::string_view commands, std::string_view command);

/// A description of an option in the help of some commands.
struct CommandHelp {
  std::string_view commands;  ///< names separated by spaces
  std::string text;
};

/// Whether a run that continues may have another value of an option.
enum class OnResume {
  same,        ///< the value decides the run's numbers
  free,        ///< the value decides how the numbers are computed, or how results are used
  unfinished,  ///< as free, but the results of a finished run have the value
  longer,      ///< with --extend
};

/// An option and its value.
struct OptionValue {
  std::string_view option = {};
  std::string_view value = {};
};

/// Another option that must have a value. If `choice` is empty, any value will do, and `why` says what for.
struct OptionNeed {
  std::string_view option = {};
  std::string_view choice = {};
  std::string_view why = {};
  OptionValue unless = {};  ///< what does as well
};

/// The columns of an option table that most rows leave out.
struct OptionTraits {
  OnResume on_resume = OnResume::same;
  bool lays_out = false;  ///< decides what fits into memory: a given value discards the layout of a recorded run
  OptionNeed needs = {};
  std::string_view excludes = {};  ///< options that must not be set, too, separated by spaces
  std::string_view from_run = {};  ///< commands that take the value from the run that trained their model
  bool is_shown = false;           ///< printed commands of train have it, also if it was not given
};

/// The columns of a row of an option table.
struct OptionRow {
  std::string name;          ///< "learning-rate"; users may type _ for -
  std::string placeholder;   ///< the value in the help, such as "X"; empty for a switch
  std::string_view section;  ///< section of the help
  std::string commands;      ///< names of the commands that have it (names_command)
  std::string help;          ///< description with the unit
  OptionTraits traits = {};
  std::string expects = {};                    ///< description of valid values: "a whole number from 1 to 512"
  std::string alone = {};                      ///< value if the option is given alone; empty if a value is required
  std::vector<std::string> choices = {};       ///< the words among its values, for completion
  std::vector<std::string> aliases = {};       ///< names in other programs, also from the table of peers' options
  bool is_derived = false;                     ///< default depends on other options: not shown in the help
  bool is_of_task = false;                     ///< not every task has it
  std::vector<CommandHelp> command_help = {};  ///< replaces `help` in some commands

  bool is_switch() const { return placeholder.empty(); }
  bool belongs_to(std::string_view command) const { return names_command(commands, command); }
  /// Returns the description in the help of `command`.
  const std::string& help_for(std::string_view command) const;
  /// Returns whether `text` is the option's name or an alias, with - for _.
  bool is_called(std::string_view text) const;
};

/// An option that sets a field of `Target`. core/base/options/option_kinds.hpp creates the usual kinds.
template <class Target>
struct Option : OptionRow {
  /// Stores the parsed value in the target. Returns false, leaving the target unchanged, if the text is invalid.
  std::function<bool(Target&, std::string_view)> parse = {};
  /// Returns the value for run.json, null if it is unset. Empty if the option is not a setting of the run.
  std::function<nlohmann::ordered_json(const Target&)> print = {};
  /// Stores the value of another target. Empty if no option needs it.
  std::function<void(Target&, const Target&)> copy = {};
};

/// Converts an option of a part to one of the whole. `part` returns the part: [](auto& whole) -> auto& { return
/// whole.part; }.
template <class Whole, class Part, class Finder>
Option<Whole> option_of_whole(const Option<Part>& option, Finder part) {
  Option<Whole> whole{option};
  whole.parse = [parse = option.parse, part](Whole& target, std::string_view text) {
    return parse(part(target), text);
  };
  if (option.print) {
    whole.print = [print = option.print, part](const Whole& target) { return print(part(target)); };
  }
  if (option.copy) {
    whole.copy = [copy = option.copy, part](Whole& target, const Whole& source) { copy(part(target), part(source)); };
  }
  return whole;
}

/// The source of each option that was set, by name, and the switches that are on.
struct OptionSources {
  std::set<std::string, std::less<>> given = {};                   ///< set on the command line
  std::set<std::string, std::less<>> configured = {};              ///< set in the --config file
  std::set<std::string, std::less<>> switched_on = {};             ///< switches that are on
  std::map<std::string, std::string, std::less<>> spellings = {};  ///< peers' options by which others were set

  bool was_given(std::string_view name) const { return given.contains(name); }
  bool was_configured(std::string_view name) const { return configured.contains(name); }
  /// Returns whether `name` is set only in the configuration file and the command line overrides it by `other`, which
  /// excludes it.
  bool is_overridden(std::string_view name, std::string_view other) const {
    return !was_given(name) && was_given(other);
  }
  /// Returns the peer's option by which `name` was set, else `name`.
  std::string_view spelling(std::string_view name) const;
  /// Rejects two mutually exclusive settings if both are on the command line, or both only in the configuration file.
  /// Errors: UsageError naming both.
  void exclude(std::string_view one, std::string_view other) const;
};

/// Errors: UsageError, always, which says that two options of the command line (`is_typed`) or of a configuration
/// exclude each other.
[[noreturn]] void refuse_both(std::string_view one, std::string_view other, bool is_typed);

}  // namespace mylos
