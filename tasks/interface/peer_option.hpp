#pragma once

#include <string_view>

namespace mylos::tasks {

/// An option of another program (Hugging Face's scripts and Trainer, Lightning, DeepSpeed, FSDP) that Mylos does not
/// have.
struct PeerOption {
  std::string_view name;  ///< without --, and with "-" for "_"
  bool is_switch = false;
  std::string_view harmless = {};  ///< comma-separated values that are accepted and ignored; empty = all values
  std::string_view why = {};       ///< why Mylos ignores these values; if it is empty, Mylos refuses every value
  std::string_view instead = {};   ///< what to use instead of the values that are refused
  bool is_secret = false;          ///< messages never contain the value
};

}  // namespace mylos::tasks
