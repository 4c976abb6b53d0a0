#include "app/program/option_spelling.hpp"

#include <fmt/format.h>

namespace mylos::app {

std::string option_spelling(std::string_view name, std::string_view value) {
  return value.empty() ? fmt::format("--{}", name) : fmt::format("--{} {}", name, value);
}

}  // namespace mylos::app
