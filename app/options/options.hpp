#pragma once

#include "app/options/arguments.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// The one table of options, from which parsing, --help and run.json derive.
namespace mylos::app {

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
};

struct Option {
  std::string name;                  ///< "learning-rate"; users may write _ for -
  std::vector<std::string> aliases;  ///< what the peers call it: "lr"
  std::string placeholder;           ///< of the value, "X"; empty = a switch
  std::string_view section;          ///< of the help
  unsigned commands = 0;             ///< CommandBits
  std::string help;                  ///< what it does, with the unit
  std::string expects = {};          ///< what a value must be, "a whole number from 1 to 512"
  /// Puts the value in its place; false, with the arguments as they were, where it is not what is expected.
  std::function<bool(Arguments&, std::string_view)> parse = {};
  /// The value for run.json, null where it is unset; empty where the option is no setting of the run.
  std::function<nlohmann::ordered_json(const Arguments&)> print = {};
  std::string alone = {};                 ///< the value where none follows the name; empty where one has to
  std::vector<std::string> choices = {};  ///< the words among its values; completion offers them

  bool is_switch() const { return placeholder.empty(); }
  bool belongs_to(unsigned command) const { return (commands & command) != 0; }
};

/// All options of all commands, in the order in which help shows them.
const std::vector<Option>& option_table();

/// `name` as the table writes it: with - for _.
std::string normalized_name(std::string_view name);

/// The option with this name or alias, normalised; null where there is none.
const Option* find_option(std::string_view name);

/// The parts of the table, one file each.
std::vector<Option> data_options();
std::vector<Option> training_options();
std::vector<Option> rank_options();
std::vector<Option> answer_options();
std::vector<Option> tool_options();
std::vector<Option> plan_options();

}  // namespace mylos::app
