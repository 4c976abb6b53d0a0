#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

/// Threads that the system may refuse to start.
namespace mylos {

/// Returns the message for a thread that could not be started, with the limits of this process (ulimit -u and -v).
std::string no_thread_text();

/// Starts a thread that calls `work`. Throws std::runtime_error with no_thread_text() if the system refuses it.
template <class Work>
std::thread start_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    throw std::runtime_error(no_thread_text());
  }
}

/// Checks that `count` more threads can run at the same time, by starting and ending them. Libraries that cannot start
/// a thread end the program in ways of their own. Throws std::runtime_error with no_thread_text().
void check_threads(std::size_t count);

}  // namespace mylos
