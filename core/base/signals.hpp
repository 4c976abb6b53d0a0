#pragma once

#include <csignal>
#include <string>

/// Signals that end a run: at the end of a step or, if no step is running, at once. Handlers save nothing.
namespace mylos {

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

 private:
  PreviousHandlers previous_;
};

/// Sets the line that is written to standard error if the first signal a SignalGuard catches is SIGTERM or SIGINT; none
/// if `line` is empty. Must be called while no guard lives.
void set_termination_notice(const std::string& line);

/// Returns the exit code of a run ended by `signal`: 130 for SIGINT, 143 for SIGTERM, 85 for SIGUSR1, 0 for no signal.
int exit_code_of(int signal);

}  // namespace mylos
