#pragma once

#include <stdexcept>

/// A mistake in the command line: one line that says what to change, exit code 2.
namespace mylos {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An option or a value that the task of the run does not take. Another task might.
class TaskError : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace mylos
