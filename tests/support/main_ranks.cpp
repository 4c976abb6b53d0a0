#include "core/base/process/signals.hpp"
#include "core/device.hpp"
#include "parallel/communicator/agreement.hpp"
#include "tests/support/launch.hpp"

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

namespace mylos::tests {
namespace {

std::optional<parallel::Launch> launched;

/// Prints only failures, on ranks other than the first.
class FailurePrinter final : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(std::size_t rank) : rank_(rank) {}

  void OnTestStart(const ::testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("rank %zu: %s.%s: %s:%d: %s\n", rank_, test_ ? test_->test_suite_name() : "",
                test_ ? test_->name() : "", result.file_name() ? result.file_name() : "", result.line_number(),
                result.message());
    std::fflush(stdout);
  }

 private:
  std::size_t rank_;
  const ::testing::TestInfo* test_ = nullptr;
};

void print_failures_only(std::size_t rank) {
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter(rank));  // GoogleTest deletes it
}

int run() {
  const std::size_t rank = launched->world().rank();
  if (rank != 0) print_failures_only(rank);
  Kokkos::InitializationSettings settings;
  settings.set_disable_warnings(true);
  settings.set_num_threads(static_cast<int>(launched->threads()));
  if constexpr (!runs_on_host) settings.set_device_id(static_cast<int>(launched->device()));
  const Kokkos::ScopeGuard kokkos(settings);
  const int failed = RUN_ALL_TESTS();
  return parallel::maximum(launched->world(), failed) == 0 ? 0 : 1;
}

}  // namespace

parallel::Launch& launch() { return *launched; }

}  // namespace mylos::tests

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  try {
    mylos::start_signal_thread();
    mylos::tests::launched.emplace();
    const int exit_code = mylos::tests::run();
    mylos::tests::launched.reset();
    return exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
