#pragma once

#include <stdexcept>

/// A mistake in the command line: one line that says what to change, exit code 2.
namespace mylos {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mylos
