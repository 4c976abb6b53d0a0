#pragma once

#include <csignal>
#include <string>

/// Signals that end a run: at a step's end, or at once where no step runs. Handlers save nothing.
namespace mylos {

/// What SIGINT, SIGTERM and SIGUSR1 did before, given back when it dies.
class PreviousHandlers {
 public:
  /// Installs `handler` for them.
  explicit PreviousHandlers(void (*handler)(int));
  ~PreviousHandlers();
  PreviousHandlers(const PreviousHandlers&) = delete;
  PreviousHandlers& operator=(const PreviousHandlers&) = delete;

 private:
  struct sigaction previous_[3];
};

/// While it lives, each of these signals ends the process at once, with its exit code and one line: for loading, after
/// which there is nothing to save yet. A SignalGuard takes over while it lives.
class PromptEnd {
 public:
  PromptEnd();

 private:
  PreviousHandlers previous_;
};

/// Catches SIGINT, SIGTERM and SIGUSR1 while it lives; a second SIGINT ends the process at once. A guard within another
/// knows the signals that came to the outer one.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The signal that came first since the outermost guard's construction, or 0.
  int received() const;

 private:
  PreviousHandlers previous_;
};

/// From here on a SignalGuard's process writes `line` to standard error when SIGTERM or SIGINT is the first signal that
/// comes; nothing where it is empty. Called while no guard lives.
void set_termination_notice(const std::string& line);

/// The exit code INTERFACE gives to a run that `signal` ended; 0 for no signal.
int exit_code_of(int signal);

}  // namespace mylos
