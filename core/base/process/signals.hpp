#pragma once

#include <csignal>
#include <string>

/// Signals that end a run: at the end of a step or, if no step is running, at once. Handlers save nothing.
///
/// A handler must not run in a thread that computes: oneDNN's float products for AVX2 keep the stack pointer in memory
/// of the heap, and the system would write the handler's frame there.
namespace mylos {

/// Starts a thread in which the handlers of SIGINT, SIGTERM, SIGUSR1 and of other signals to the process run, and
/// blocks these signals in the calling thread and in all threads started afterwards. Call it once, before any library
/// starts a thread. Signals from profilers (SIGPROF, real-time signals) and errors (SIGSEGV) stay where they occur.
/// Errors: std::runtime_error if the thread cannot be started.
void start_signal_thread();

/// Returns the signals that were blocked before start_signal_thread(), which child processes should inherit; null if it
/// was not called.
const sigset_t* inherited_signal_mask();

/// Saves the handlers of SIGINT, SIGTERM and SIGUSR1, and restores them on destruction.
class PreviousHandlers {
 public:
  /// Installs `handler` for the three signals.
  explicit PreviousHandlers(void (*handler)(int));
  ~PreviousHandlers();
  PreviousHandlers(const PreviousHandlers&) = delete;
  PreviousHandlers& operator=(const PreviousHandlers&) = delete;

 private:
  struct sigaction previous_[3];
};

/// While it lives, each of these signals ends the process at once, with the signal's exit code and one line. For the
/// loading phase, when there is nothing to save yet. A SignalGuard takes precedence while it lives.
class PromptEnd {
 public:
  PromptEnd();

  /// Leaves out the line from now on, until another PromptEnd is made: all that is to be said was said.
  static void say_no_more();

 private:
  PreviousHandlers previous_;
};

/// Catches SIGINT, SIGTERM and SIGUSR1 while it lives; a second SIGINT ends the process at once. A nested guard also
/// sees the signals received by the outer guard.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// Returns the first signal received since the outermost guard was constructed, or 0.
  int received() const;

  /// Ends the run as if the process had received `signal`. Only while a guard lives.
  static void receive(int signal);

 private:
  PreviousHandlers previous_;
};

/// Sets the line that is written to standard error if the first signal a SignalGuard catches is SIGTERM or SIGINT; none
/// if `line` is empty. Must be called while no guard lives.
void set_termination_notice(const std::string& line);

/// Returns the exit code of a run ended by `signal`: 130 for SIGINT, 143 for SIGTERM, 85 for SIGUSR1, 0 for no signal.
int exit_code_of(int signal);

}  // namespace mylos
