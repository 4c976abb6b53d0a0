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
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// For test_nccl_faults.cpp: ranks that exchange data through the stand-in for NCCL, one of which has a fault. Usage:
/// failing_nccl RANK NAME VALUE ORDER. The rank RANK has the environment variable NAME with VALUE. NCCL_STAND_IN_FAULT
/// has the values of tests/parallel/communicator/nccl_stand_in/nccl.cpp, and two more that take a step: in "kill:3" a
/// signal ends the rank, in "throw:3" it throws an error of its own. Each step sums an array over the ranks, and one
/// over a second group of the same ranks, so the device runs operations of two NCCL communicators. ORDER is the order
/// of sums, "tree" or "library"; with "group", which has the library's order, each step sums three arrays in one call;
/// with "agreement", hosts exchange values during the sum of step 3, in which RANK must fail.
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

/// `fault` is that of this rank; empty if it has none.
void exchange(Launch& launch, const std::string& fault, const std::string& order) {
  const ExecutionSpace space;
  const Vector<float> gradients("test::gradients", 1 << 16), others("test::others", 1 << 15),
      seconds("test::seconds", 9);
  std::vector<NamedArray> arrays = {{buffer_of(gradients), "layer 3 gradients"}};
  if (order == "group") {
    for (const std::size_t begin : {std::size_t{0}, others.size() / 2}) {
      arrays.push_back({buffer_of(slice(others, begin, begin + others.size() / 2)), "other gradients"});
    }
  }
  const std::unique_ptr<Communicator> second_group = launch.world().split(0, launch.world().rank());
  Event last;
  for (std::size_t step = 1; step <= 5; ++step) {
    launch.note_step(step);
    const auto comes = [&](const char* kind) { return fault.starts_with(fmt::format("{}:{}", kind, step)); };
    if (comes("kill")) std::raise(SIGKILL);
    if (comes("throw")) {
      last.wait_for_its_end();  // as all do whose arrays are freed next
      throw std::runtime_error("an error of its own");
    }
    if (order == "agreement" && step == 3) {
      fail_during_an_exchange(launch.world(), space, arrays.front().data, !fault.empty());
    }
    launch.world().all_reduce_coalesced(space, arrays).wait(space);
    last = second_group->all_reduce(space, buffer_of(seconds), "sums of the second group");
    last.wait(space);
  }
  // Reports also the error of the last operation.
  launch.world().barrier("the end");
}

/// Reports an error as the program does (app/program/on_ranks.cpp).
template <class Work>
void report_errors(Launch& launch, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (launch.announce_error()) std::fprintf(stderr, "mylos: error: %s\n", error.what());
    throw;
  }
}

void run(std::size_t rank, const std::string& name, const std::string& value, const std::string& order) {
  Launch launch;
  // Long enough for a busy machine if nothing hangs.
  const bool hangs = value.starts_with("hang") || value == "connect" || value == "destroy";
  const bool fails_and_hangs = value.ends_with(",abort") || value.ends_with(",destroy");
  launch.set_time_limit(std::chrono::seconds(hangs ? 2 : fails_and_hangs ? 8 : 15));
  const bool fails = launch.world().rank() == rank;
  if (fails) ::setenv(name.c_str(), value.c_str(), 1);
  report_errors(launch, [&] {
    launch.use_communicator("nccl", order == "tree");
    Kokkos::InitializationSettings settings;
    settings.set_num_threads(1);
    settings.set_disable_warnings(true);
    const Kokkos::ScopeGuard kokkos(settings);
    try {
      exchange(launch, fails ? value : "", order);
    } catch (const std::exception&) {
      if (stand_in_busy_streams() > 0) std::fputs("the device is still at work after an error\n", stderr);
      throw;
    }
  });
}

}  // namespace
}  // namespace mylos::parallel

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    mylos::parallel::run(std::stoul(argv[1]), argv[2], argv[3], argv[4]);
    return 0;
  } catch (const std::exception&) {  // reported
    return 1;
  }
}
