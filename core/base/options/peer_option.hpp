#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A row of the table of options of other programs: Hugging Face's scripts and Trainer, Lightning, DeepSpeed, FSDP.
namespace mylos {

/// Names of our options with their values as text.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

/// The other options of a command line or configuration, for a peer's option whose meaning depends on them.
struct PeerSurroundings {
  using Find = std::function<std::optional<std::string>(std::string_view option)>;

  bool is_typed = false;   ///< it is on the command line, not in a configuration
  Find typed, configured;  ///< return the last value of one of our options there
  std::function<void(std::string_view option, bool is_typed)> leave_out;  ///< the meaning contains its value
  std::function<void(std::string text)> remark;
};

/// An option of a peer: another name of an option of ours, a setting of ours by another name, or one that Mylos does
/// not have.
struct PeerOption {
  using Meaning = OptionTexts (*)(const std::string& value, const PeerSurroundings& around);

  std::string_view name;  ///< without --, and with "-" for "_"
  bool is_switch = false;
  std::string_view values = {};    ///< comma-separated values that are taken; empty = all values
  std::string_view why = {};       ///< why Mylos ignores these values
  std::string_view instead = {};   ///< advice for values that are refused
  bool is_secret = false;          ///< messages never contain the value
  std::string_view option = {};    ///< ours that it stands for; if that and `why` are empty, Mylos refuses every value
  std::string_view value = {};     ///< the value of ours that a switch stands for
  std::string_view commands = {};  ///< commands that list it as an option; empty: it is listed as a name of ours
  std::string_view placeholder = {}, help = {};  ///< in their help; by default of a switch
  Meaning meaning = nullptr;                     ///< settings of ours, if they depend on the value and on other options

  /// Returns whether it is another name of `option`.
  constexpr bool is_alias() const { return !option.empty() && commands.empty(); }
};

/// Returns another name of `option`.
constexpr PeerOption peer_alias(std::string_view name, std::string_view option) {
  return {.name = name, .option = option};
}

/// Returns a switch of `commands` that sets `option` to `value`.
constexpr PeerOption peer_switch(std::string_view name, std::string_view option, std::string_view value,
                                 std::string_view commands) {
  return {.name = name, .is_switch = true, .option = option, .value = value, .commands = commands};
}

}  // namespace mylos
