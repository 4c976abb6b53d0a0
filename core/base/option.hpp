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

/// An option of the command line, as an entry of a table from which parsing, --help, run.json and --config derive.
namespace mylos {

/// The commands that have an option: a sum of these.
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

/// An option that fills a field of `Target`. core/base/option_kinds.hpp makes the usual kinds.
template <class Target>
struct Option {
  std::string name;                  ///< "learning-rate"; users may write _ for -
  std::vector<std::string> aliases;  ///< what the peers call it: "lr"
  std::string placeholder;           ///< of the value, "X"; empty = a switch
  std::string_view section;          ///< of the help
  unsigned commands = 0;             ///< CommandBits
  std::string help;                  ///< what it does, with the unit
  std::string expects = {};          ///< what a value must be, "a whole number from 1 to 512"
  /// Puts the value in its place; false, with the target as it was, where it is not what is expected.
  std::function<bool(Target&, std::string_view)> parse = {};
  /// The value for run.json, null where it is unset; empty where the option is no setting of the run.
  std::function<nlohmann::ordered_json(const Target&)> print = {};
  std::string alone = {};                 ///< the value where none follows the name; empty where one has to
  std::vector<std::string> choices = {};  ///< the words among its values; completion offers them
  bool is_derived = false;                ///< its value follows from others where it is not given: help shows none

  bool is_switch() const { return placeholder.empty(); }
  bool belongs_to(unsigned command) const { return (commands & command) != 0; }
  /// Whether it is called `text`, which has - for _.
  bool is_called(std::string_view text) const {
    return name == text || std::ranges::find(aliases, text) != aliases.end();
  }
};

/// The option of a part as one of the whole: `part` finds the part, [](auto& whole) -> auto& { return whole.part; }.
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
                      option.is_derived};
  whole.parse = [parse = option.parse, part](Whole& target, std::string_view text) {
    return parse(part(target), text);
  };
  if (option.print) {
    whole.print = [print = option.print, part](const Whole& target) { return print(part(target)); };
  }
  return whole;
}

/// Where options that were set stand, by their names.
struct OptionSources {
  std::set<std::string, std::less<>> given = {};       ///< on the command line
  std::set<std::string, std::less<>> configured = {};  ///< in the file of --config

  bool was_given(std::string_view name) const { return given.contains(name); }
  bool was_configured(std::string_view name) const { return configured.contains(name); }
  /// Whether only the configuration says `name`, and the command line says `other`, which excludes it and wins.
  bool is_overridden(std::string_view name, std::string_view other) const {
    return !was_given(name) && was_given(other);
  }
  /// Refuses two settings that mean the same where both are on the command line, or both only in the configuration.
  /// Errors: UsageError that names both.
  void exclude(std::string_view one, std::string_view other) const;
};

}  // namespace mylos
