#pragma once

#include <cerrno>

namespace mylos {

/// Repeats a system call that returns -1 on failure as long as a signal interrupts it, and returns its result.
/// SA_RESTART is not enough: fallocate is never restarted, and libraries may install handlers without it.
template <class Call>
auto uninterrupted(const Call& call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace mylos
