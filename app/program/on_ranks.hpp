#pragma once

#include "parallel/launch/launch.hpp"

#include <functional>

/// What the program does on several ranks as if it were one: one line of an error, one exit code.
namespace mylos::app {

/// Thrown where an error has been told already: the program ends with its exit code and says nothing more.
struct AlreadyTold {
  int exit_code = 0;
};

/// The exit code of `work`, which all ranks run. An error that all ranks have is told by the first one, one that only
/// some ranks have by the lowest of them; these then throw AlreadyTold so that `launch` does not wait for the others.
int on_ranks(parallel::Launch& launch, const std::function<int()>& work);

/// Runs `work`, which is not collective, on every rank. An error of any is one of all: UsageError where it was that,
/// else parallel::SharedError.
void on_all_ranks(parallel::Communicator& ranks, const std::function<void()>& work);

}  // namespace mylos::app
