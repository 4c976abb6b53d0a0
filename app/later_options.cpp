#include "app/options.hpp"

#include <fmt/format.h>

/// Options that INTERFACE names and this version does not have: refused by name, never ignored.
namespace mylos::app {

std::vector<Option> later_options() {
  struct Later {
    const char* name;
    std::vector<std::string> aliases;
  };
  const std::vector<Later> names = {
      {"communicator", {}},
      {"bucket-mib", {}},
  };
  std::vector<Option> options;
  for (const Later& later : names) {
    Option option{later.name, later.aliases, "", "", train_command, ""};
    option.refusal = "this version does not have it; leave it out";
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace mylos::app
