#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Options of Hugging Face's run_qa and Trainer that Mylos has no option for: those without an effect here, which are
/// taken with a line that says so, and those that would change a run, which are refused with a line that names ours.
namespace mylos::app {

struct PeerOption {
  std::string_view name;  ///< with - for _
  bool is_switch = false;
  std::string_view harmless = {};  ///< the values without effect, separated by commas; empty = all
  std::string_view why = {};       ///< why those have none; empty = no value is taken
  std::string_view instead = {};   ///< what to do where the value is none of them
  bool is_secret = false;          ///< its value is told nowhere
};

std::span<const PeerOption> peer_options();

/// The one of that name, as the table writes it; null where there is none.
const PeerOption* find_peer_option(std::string_view name);

/// The line that says why --`typed` `value` has no effect. Errors: UsageError where it would have one.
std::string remark_on(const PeerOption& option, std::string_view typed, std::string_view value);

}  // namespace mylos::app
