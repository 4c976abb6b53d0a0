#pragma once

#include <string_view>

/// How Mylos reports what is wrong: on the host by exceptions whose message is one line for the user.
namespace mylos {

/// A line of our source; what std::source_location is, which clang 14 cannot compile.
struct SourceLocation {
  const char* file;
  int line;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Throws std::invalid_argument with `message` and where it was asked, unless `condition`: the caller is wrong.
void require(bool condition, std::string_view message, SourceLocation where = SourceLocation::current());

/// Throws std::runtime_error with `message`, unless `condition`: the world is wrong (files, data, memory).
void ensure(bool condition, std::string_view message);

/// Throws std::runtime_error with `message`; for branches that compute their message only when it is needed.
[[noreturn]] void fail(std::string_view message);

}  // namespace mylos
