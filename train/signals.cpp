#include "train/signals.hpp"

#include <csignal>
#include <cstdlib>
#include <iterator>

namespace mylos::train {
namespace {

constexpr int caught[] = {SIGINT, SIGTERM, SIGUSR1};
constexpr int interrupted = 130, run_again = 85, terminated = 143;

volatile std::sig_atomic_t first_signal = 0;
struct sigaction previous[std::size(caught)];

extern "C" void on_signal(int signal) {
  if (first_signal != 0 && signal == SIGINT) std::_Exit(interrupted);
  if (first_signal == 0) first_signal = signal;
}

}  // namespace

SignalGuard::SignalGuard() {
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(caught); ++i) sigaction(caught[i], &action, &previous[i]);
}

SignalGuard::~SignalGuard() {
  for (std::size_t i = 0; i < std::size(caught); ++i) sigaction(caught[i], &previous[i], nullptr);
}

int SignalGuard::received() const { return first_signal; }

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

}  // namespace mylos::train
