#pragma once

#include "app/options/commands.hpp"
#include "app/options/options.hpp"
#include "core/base/options/peer_option.hpp"

#include <functional>
#include <string>
#include <vector>

/// Settings of a command line, a configuration or a recipe, and their translation from peers' words to ours.
namespace mylos::app {

struct Setting {
  const Option* option = nullptr;    ///< row of its name
  std::string value;                 ///< text that is not parsed yet
  std::string shown;                 ///< its name in messages: "--max_steps", "run.json: steps"
  const PeerOption* peer = nullptr;  ///< the peer's row if it is more than another name of an option of ours

  /// Returns whether it sets `name`, or denies a switch that does.
  bool is_about(std::string_view name) const;
};

/// The settings of a command, in order. Those on the command line replace the others.
struct Settings {
  std::vector<Setting> configured;  ///< of a configuration or a recipe
  std::vector<Setting> typed;
  std::vector<std::string> left_out;  ///< configured options whose values are part of what a peer's option means
};

/// Replaces settings of peers' options by those of ours that they mean, in their places. Their row of the table stays
/// with them. Errors: UsageError if a value is wrong, or if a peer's option and another one set the same otherwise.
void translate(Settings& settings, const Arguments& defaults, std::vector<std::string>& remarks);

}  // namespace mylos::app
