#include "core/base/process/signals.hpp"

#include "core/base/error.hpp"
#include "core/base/process/threads.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <type_traits>

namespace mylos {
namespace {

constexpr int caught[] = {SIGINT, SIGTERM, SIGUSR1};
constexpr int interrupted = 130, run_again = 85, terminated = 143;

/// The handlers of these may belong to a library (UCX installs one for SIGHUP), and run in the signal thread as ours
/// do.
constexpr int foreign[] = {SIGHUP, SIGUSR2, SIGALRM, SIGCHLD, SIGURG};

std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "the handler uses it");
std::atomic<bool> is_silent = false;
int guards = 0;

sigset_t inherited_mask;
bool has_thread = false;

/// The line that the handler writes; preformatted because a handler must not allocate.
std::array<char, 512> notice;
std::size_t notice_bytes = 0;

extern "C" void on_signal(int signal) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, signal)) {
    if (signal == SIGINT) std::_Exit(interrupted);
    return;
  }
  if (signal == SIGUSR1 || notice_bytes == 0) return;
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, notice.data(), notice_bytes);
  errno = error;
}

/// Async-signal-safe.
extern "C" void end_at_once(int signal) {
  static constexpr char message[] = "mylos: ended by a signal while no step ran; nothing more is saved\n";
  if (!is_silent) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, sizeof message - 1);
  }
  std::_Exit(exit_code_of(signal));
}

/// Used in the constructor's initialiser list. Clears signals received before the outermost guard.
auto forget_signals_for(void (*handler)(int)) {
  if (guards++ == 0) first_signal = 0;
  return handler;
}

sigset_t signals_of_the_thread() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : caught) sigaddset(&signals, signal);
  for (const int signal : foreign) sigaddset(&signals, signal);
  return signals;
}

extern "C" void* wait_for_signals(void*) {
  const sigset_t signals = signals_of_the_thread();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  for (;;) ::pause();
}

}  // namespace

void start_signal_thread() {
  require(!has_thread, "start_signal_thread: it runs already");
  const sigset_t signals = signals_of_the_thread();
  ::pthread_sigmask(SIG_BLOCK, &signals, &inherited_mask);
  constexpr std::size_t stack_bytes = 256 * 1024;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &attributes, wait_for_signals, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    ::pthread_sigmask(SIG_SETMASK, &inherited_mask, nullptr);
    fail(no_thread_text());
  }
  has_thread = true;
}

const sigset_t* inherited_signal_mask() { return has_thread ? &inherited_mask : nullptr; }

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

PromptEnd::PromptEnd() : previous_(end_at_once) { is_silent = false; }

void PromptEnd::say_no_more() { is_silent = true; }

SignalGuard::SignalGuard() : previous_(forget_signals_for(on_signal)) {}

SignalGuard::~SignalGuard() { --guards; }

int SignalGuard::received() const { return first_signal; }

void SignalGuard::receive(int signal) {
  require(guards > 0, "SignalGuard::receive: no guard lives");
  on_signal(signal);
}

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
