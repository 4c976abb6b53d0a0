#pragma once

#include <stdexcept>

/// What a user typed is wrong: one line that says what to change, exit code 2.
namespace mylos {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mylos
