#pragma once

/// Signals that end a run at a step's end. Handlers only set a flag (nothing is saved from inside one).
namespace mylos::train {

/// Catches SIGINT, SIGTERM and SIGUSR1 while it lives; a second SIGINT ends the process at once.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// The signal that came first since construction, or 0.
  int received() const;
};

/// The exit code INTERFACE gives to a run that `signal` ended; 0 for no signal.
int exit_code_of(int signal);

}  // namespace mylos::train
