#pragma once

#include <string_view>

namespace mylos::tasks {

/// An option of a peer (Hugging Face's scripts and Trainer, Lightning, DeepSpeed, FSDP) without equivalent in Mylos.
struct PeerOption {
  std::string_view name;  ///< with - instead of _
  bool is_switch = false;
  std::string_view harmless = {};  ///< comma-separated values without effect; empty = all
  std::string_view why = {};       ///< why these values have no effect; empty = every value is refused
  std::string_view instead = {};   ///< advice for all other values
  bool is_secret = false;          ///< its value is never printed
};

}  // namespace mylos::tasks
