#include "core/base/error.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace mylos {

void require(bool condition, std::string_view message, SourceLocation where) {
  if (condition) return;
  throw std::invalid_argument(fmt::format("{} [{}:{}]", message, where.file, where.line));
}

void ensure(bool condition, std::string_view message) {
  if (!condition) fail(message);
}

void fail(std::string_view message) { throw std::runtime_error(std::string(message)); }

}  // namespace mylos
