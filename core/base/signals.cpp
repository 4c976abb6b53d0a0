#include "core/base/signals.hpp"

#include "core/base/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <type_traits>

namespace mylos {
namespace {

constexpr int caught[] = {SIGINT, SIGTERM, SIGUSR1};
constexpr int interrupted = 130, run_again = 85, terminated = 143;

volatile std::sig_atomic_t first_signal = 0;
int guards = 0;

/// The line that the handler writes; preformatted because a handler must not allocate.
std::array<char, 512> notice;
std::size_t notice_bytes = 0;

extern "C" void on_signal(int signal) {
  if (first_signal != 0 && signal == SIGINT) std::_Exit(interrupted);
  if (first_signal != 0) return;
  first_signal = signal;
  if (signal == SIGUSR1 || notice_bytes == 0) return;
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, notice.data(), notice_bytes);
  errno = error;
}

/// Async-signal-safe.
extern "C" void end_at_once(int signal) {
  static constexpr char message[] = "mylos: ended by a signal while no step ran; nothing more is saved\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, sizeof message - 1);
  std::_Exit(exit_code_of(signal));
}

/// Used in the constructor's initialiser list. Clears signals received before the outermost guard.
auto forget_signals_for(void (*handler)(int)) {
  if (guards++ == 0) first_signal = 0;
  return handler;
}

}  // namespace

PreviousHandlers::PreviousHandlers(void (*handler)(int)) {
  static_assert(std::size(caught) == std::extent_v<decltype(previous_)>);
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(caught); ++i) sigaction(caught[i], &action, &previous_[i]);
}

PreviousHandlers::~PreviousHandlers() {
  for (std::size_t i = 0; i < std::size(caught); ++i) sigaction(caught[i], &previous_[i], nullptr);
}

PromptEnd::PromptEnd() : previous_(end_at_once) {}

SignalGuard::SignalGuard() : previous_(forget_signals_for(on_signal)) {}

SignalGuard::~SignalGuard() { --guards; }

int SignalGuard::received() const { return first_signal; }

void set_termination_notice(const std::string& line) {
  const std::string text = line.empty() ? "" : "mylos: " + line + "\n";
  require(text.size() <= notice.size(), "signals: a notice of too many characters");
  std::ranges::copy(text, notice.begin());
  notice_bytes = text.size();
}

int exit_code_of(int signal) {
  switch (signal) {
    case 0:
      return 0;
    case SIGINT:
      return interrupted;
    case SIGUSR1:
      return run_again;
    default:
      return terminated;
  }
}

}  // namespace mylos
