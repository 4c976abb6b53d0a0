#pragma once

#include <chrono>
#include <thread>

namespace mylos::tests {

/// How long tests wait for anything. It only ends what hangs, and is at least twenty times what any of it takes on an
/// idle machine, because the speed of a machine must not fail a test. Tests as a whole have the limit of
/// cmake/MylosTargets.cmake, which leaves room for one that hangs this long.
inline constexpr std::chrono::minutes hang_limit(10);

/// Waits until `condition` returns true. Returns false if it does not within the time above.
template <class Condition>
bool wait_until(const Condition& condition, std::chrono::milliseconds between_looks = std::chrono::milliseconds(2)) {
  const auto end = std::chrono::steady_clock::now() + hang_limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}

}  // namespace mylos::tests
