// Signals are raised in forked children, so that they do not affect the test process.

#include "core/base/process/signals.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

namespace mylos {
namespace {

/// Runs `action` in a child, which exits with its result. Returns the child's wait status.
template <class Action>
int status_of_child(Action&& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);  // this program's threads block signals
    ::_exit(action());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool exited_with(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

TEST(SignalGuard, RemembersTheSignalAndLetsTheProcessGoOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const int status = status_of_child([signal] {
      const SignalGuard guard;
      if (guard.received() != 0) return 1;
      ::raise(signal);
      return guard.received() == signal ? 0 : 2;
    });
    EXPECT_TRUE(exited_with(status, 0)) << "signal " << signal << ": " << status;
  }
}

TEST(SignalGuard, RemembersTheFirst) {
  const int status = status_of_child([] {
    const SignalGuard guard;
    ::raise(SIGUSR1);
    ::raise(SIGTERM);
    return guard.received() == SIGUSR1 ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0)) << status;
}

TEST(SignalGuard, ASecondInterruptEndsTheProcessAtOnce) {
  const int status = status_of_child([] {
    const SignalGuard guard;
    ::raise(SIGINT);
    ::raise(SIGINT);
    return 0;
  });
  EXPECT_TRUE(exited_with(status, 130)) << status;
}

TEST(SignalGuard, GivesTheHandlersBack) {
  const int status = status_of_child([] {
    { const SignalGuard guard; }
    ::raise(SIGTERM);
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(SignalGuard, ForgetsWhatCameToAnEarlierOne) {
  const int status = status_of_child([] {
    {
      const SignalGuard guard;
      ::raise(SIGTERM);
    }
    return SignalGuard().received();
  });
  EXPECT_TRUE(exited_with(status, 0)) << status;
}

TEST(SignalGuard, KnowsWhatCameToTheOneAroundIt) {
  const int status = status_of_child([] {
    const SignalGuard outer;
    ::raise(SIGTERM);
    const SignalGuard inner;
    return inner.received() == SIGTERM ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0)) << status;
}

/// Returns what a child that does `work` writes to standard error.
template <class Work>
std::string errors_of_child(const Work& work) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  status_of_child([&] {
    ::dup2(ends[1], STDERR_FILENO);
    work();
    return 0;
  });
  ::close(ends[1]);
  char text[1000];
  const ssize_t length = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// The same of a child that receives `signals` within a guard.
std::string errors_of_child(std::initializer_list<int> signals) {
  return errors_of_child([&] {
    const SignalGuard guard;
    for (const int signal : signals) ::raise(signal);
  });
}

TEST(SignalGuard, SaysAtOnceWhatWillHappenWhereItIsTold) {
  EXPECT_EQ(errors_of_child({SIGTERM}), "");
  set_termination_notice("will be killed");
  EXPECT_EQ(errors_of_child({SIGTERM}), "mylos: will be killed\n");
  EXPECT_EQ(errors_of_child({SIGINT, SIGTERM}), "mylos: will be killed\n") << "once";
  EXPECT_EQ(errors_of_child({SIGUSR1}), "");
  EXPECT_EQ(errors_of_child({SIGUSR1, SIGTERM}), "") << "it is being saved already";
  set_termination_notice("");
  EXPECT_EQ(errors_of_child({SIGTERM}), "");
}

TEST(PromptEnd, EndsTheProcessAtOnceWithTheSignalsCode) {
  EXPECT_EQ(exit_code_of(0), 0);
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 85}}) {
    const int status = status_of_child([signal = signal] {
      const PromptEnd prompt_end;
      ::raise(signal);
      return 0;
    });
    EXPECT_TRUE(exited_with(status, code)) << "signal " << signal << ": " << status;
  }
}

TEST(PromptEnd, SaysSoUnlessAllWasSaid) {
  for (const bool all_was_said : {false, true}) {
    const std::string errors = errors_of_child([&] {
      const PromptEnd prompt_end;
      if (all_was_said) PromptEnd::say_no_more();
      ::raise(SIGTERM);
    });
    EXPECT_EQ(errors.empty(), all_was_said) << errors;
  }
}

TEST(PromptEnd, LeavesSignalsToAGuardWhileThatLives) {
  const int status = status_of_child([] {
    const PromptEnd prompt_end;
    {
      const SignalGuard guard;
      ::raise(SIGTERM);
      if (guard.received() != SIGTERM) return 1;
    }
    ::raise(SIGUSR1);
    return 2;
  });
  EXPECT_TRUE(exited_with(status, 85)) << status;
}

std::atomic<pid_t> handling_thread = 0;

TEST(SignalThread, RunsTheHandlersOfEveryThread) {
  start_signal_thread();
  const PreviousHandlers handlers([](int) { handling_thread = ::gettid(); });
  std::set<pid_t> threads;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    handling_thread = 0;
    ::kill(::getpid(), signal);
    while (handling_thread == 0) ::usleep(100);
    threads.insert(handling_thread);
  }
  ASSERT_EQ(threads.size(), 1u);
  std::size_t others = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(*threads.begin())) continue;
    const std::string status = tests::read_file(entry.path() / "status");
    const std::uint64_t blocked = std::stoull(status.substr(status.find("SigBlk:") + 7), nullptr, 16);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGUSR2, SIGALRM, SIGCHLD, SIGURG}) {
      EXPECT_EQ(blocked >> (signal - 1) & 1, 1u) << "thread " << entry.path() << ", signal " << signal;
    }
    for (const int signal : {SIGPROF, SIGSEGV, SIGTSTP}) {
      EXPECT_EQ(blocked >> (signal - 1) & 1, 0u) << "thread " << entry.path() << ", signal " << signal;
    }
    ++others;
  }
  EXPECT_GE(others, 1u);
}

}  // namespace
}  // namespace mylos
