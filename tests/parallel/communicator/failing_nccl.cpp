#include "parallel/launch/launch.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <Kokkos_Core.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

/// For test_nccl_faults.cpp: ranks that exchange data through the stand-in for NCCL, one of which has a fault. Usage:
/// failing_nccl RANK NAME VALUE ORDER. The rank RANK has the environment variable NAME; if NAME is "kill", a signal
/// ends it in step VALUE. ORDER is the order of sums, "tree" or "library"; with "group", which has the library's order,
/// each step sums three arrays in one call; with "agreement", hosts exchange values during the sum of step 3, in which
/// RANK must fail. For values of NCCL_STAND_IN_FAULT see
/// tests/parallel/communicator/nccl_stand_in/nccl.cpp.
namespace mylos::parallel {
namespace {

/// Begins a sum over devices, which fails on this rank, while an exchange between hosts waits for the other rank.
/// Checks that the other rank's value is not written after the failure, and rethrows the error.
void fail_during_an_exchange(Communicator& world, const ExecutionSpace& space, const Buffer& gradients, bool fails) {
  std::int64_t mine = 1, all[2] = {};
  if (!fails) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Event agreement = world.all_gather(space, {&mine, 1, ElementType::int64, MemoryKind::host},
                                           {all, 2, ElementType::int64, MemoryKind::host}, "agreement");
  try {
    world.all_reduce(space, gradients, "layer 3 gradients").wait(space);
    agreement.wait_for_its_end();
  } catch (const std::exception&) {
    agreement.wait_for_its_end();
    if (!fails) throw;
    const std::int64_t of_the_other = all[1 - world.rank()];
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    if (all[1 - world.rank()] != of_the_other) {
      std::fputs("an array was written after its operation had ended\n", stderr);
    }
    world.expect_no_failure();
    std::fputs("the failure is not seen\n", stderr);
    throw;
  }
}

void exchange(Launch& launch, std::size_t killed_in, bool in_group) {
  const ExecutionSpace space;
  const Vector<float> gradients("test::gradients", 1 << 16), others("test::others", 1 << 15);
  std::vector<NamedArray> arrays = {{buffer_of(gradients), "layer 3 gradients"}};
  if (in_group) {
    for (const std::size_t begin : {std::size_t{0}, others.size() / 2}) {
      arrays.push_back({buffer_of(slice(others, begin, begin + others.size() / 2)), "other gradients"});
    }
  }
  for (std::size_t step = 1; step <= 5; ++step) {
    launch.note_step(step);
    if (step == killed_in) std::raise(SIGKILL);
    launch.world().all_reduce_coalesced(space, arrays).wait(space);
  }
  // Reports also the error of the last operation.
  launch.world().barrier("the end");
}

void run(std::size_t rank, const std::string& name, const std::string& value, const std::string& order) {
  Launch launch;
  // Long enough for a busy machine if nothing hangs.
  const bool hangs = value.starts_with("hang") || value == "connect";
  launch.set_time_limit(std::chrono::seconds(hangs ? 2 : 15));
  const bool fails = launch.world().rank() == rank;
  if (fails && name != "kill") ::setenv(name.c_str(), value.c_str(), 1);
  launch.use_communicator("nccl", order == "tree");
  Kokkos::InitializationSettings settings;
  settings.set_num_threads(1);
  settings.set_disable_warnings(true);
  const Kokkos::ScopeGuard kokkos(settings);
  try {
    if (order == "agreement") {
      const ExecutionSpace space;
      const Vector<float> gradients("test::gradients", 1 << 16);
      for (int step = 1; step < 3; ++step) launch.world().all_reduce(space, buffer_of(gradients), "sums").wait(space);
      fail_during_an_exchange(launch.world(), space, buffer_of(gradients), fails);
    }
    exchange(launch, fails && name == "kill" ? std::stoul(value) : 0, order == "group");
  } catch (const std::exception&) {
    // The arrays are freed next.
    if (stand_in_busy_streams() > 0) std::fputs("the device is still at work after an error\n", stderr);
    throw;
  }
}

}  // namespace
}  // namespace mylos::parallel

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    mylos::parallel::run(std::stoul(argv[1]), argv[2], argv[3], argv[4]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mylos: error: %s\n", error.what());
    return 1;
  }
}
