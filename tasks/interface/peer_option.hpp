#pragma once

#include <string_view>

namespace mylos::tasks {

/// An option of a peer (Hugging Face's scripts and Trainer, Lightning, DeepSpeed, FSDP) that Mylos has no option for.
struct PeerOption {
  std::string_view name;  ///< with - for _
  bool is_switch = false;
  std::string_view harmless = {};  ///< the values without effect, separated by commas; empty = all
  std::string_view why = {};       ///< why those have none; empty = every value is refused
  std::string_view instead = {};   ///< what to do where the value is none of them
  bool is_secret = false;          ///< its value is told nowhere
};

}  // namespace mylos::tasks
