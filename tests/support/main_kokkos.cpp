#include "core/base/process/signals.hpp"
#include "core/tool_fences.hpp"

#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>

namespace {

Kokkos::ScopeGuard start_kokkos(int& argc, char** argv) {
  const mylos::UnfencedTools unfenced;
  return Kokkos::ScopeGuard(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();  // ctest lists tests often; this needs no threads
  mylos::start_signal_thread();
  const Kokkos::ScopeGuard kokkos = start_kokkos(argc, argv);
  return RUN_ALL_TESTS();
}
