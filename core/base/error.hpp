#pragma once

#include <string_view>

/// Error reporting. On the host, errors are exceptions whose message is one line for the user.
namespace mylos {

/// A line of our source. Replaces std::source_location, which clang 14 cannot compile.
struct SourceLocation {
  const char* file;
  int line;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Throws std::invalid_argument with `message` and the caller's location unless `condition` holds: the caller is wrong.
void require(bool condition, std::string_view message, SourceLocation where = SourceLocation::current());

/// Throws std::runtime_error with `message` unless `condition` holds: the environment is wrong (files, data, memory).
void ensure(bool condition, std::string_view message);

/// Throws std::runtime_error with `message`; for callers that format the message only on failure.
[[noreturn]] void fail(std::string_view message);

}  // namespace mylos
