#include "parallel/launch/launch.hpp"

#include <fmt/format.h>
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// These are the stand-in's, or for NCCL itself those of no_stand_in.cpp.
extern "C" {
std::size_t stand_in_operations();
std::size_t stand_in_busy_streams();
}

/// For test_nccl_faults.cpp: ranks that exchange data through the stand-in for NCCL, one of which has a fault; also for
/// lab/validate-gpu, through NCCL itself, whose only faults are "kill" and "throw". Usage:
/// failing_nccl RANK NAME VALUE ORDER. The rank RANK has the environment variable NAME with VALUE. NCCL_STAND_IN_FAULT
/// has the values of tests/parallel/communicator/nccl_stand_in/nccl.cpp, where operations are counted after the devices
/// are connected, and two more that take a step: in "kill:3" a signal ends the rank, in "throw:3" it throws an error of
/// its own. Each step sums an array over the ranks, and one
/// over a second group of the same ranks, so the device runs operations of two NCCL communicators. ORDER is the order
/// of sums, "tree" or "library"; with "group", which has the library's order, each step sums three arrays in one call;
/// with "agreement", hosts exchange values during the sum of step 3, in which RANK must fail. With "start", operations
/// are counted from the first one that connects the devices; an error there is printed, and the ranks go on over MPI.
/// With "shared", both groups have the same order of ranks; with "mesh", groups of two ranks are connected, too, as in
/// hybrid, and operations are counted from before that.
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
  // In another order, because groups of the same ranks in the same order share a communicator of NCCL.
  const std::size_t rank = launch.world().rank();
  const std::unique_ptr<Communicator> second_group =
      launch.world().split(0, order == "shared" ? rank : launch.world().size() - rank);
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

/// Connects the devices. With "start", the ranks go on if that fails.
void connect(Launch& launch, const std::string& order) {
  try {
    launch.use_communicator("nccl", {.in_order = order == "tree", .bfloat16 = true});
  } catch (const std::exception& error) {
    if (order != "start") throw;
    std::fprintf(stderr, "goes on without NCCL: %s\n", error.what());
  }
}

/// Returns a fault whose operation is counted from the next one on.
std::string counted_from_now(const std::string& fault) {
  const std::size_t colon = fault.find(':');
  if (colon == std::string::npos) return fault;
  const std::size_t end = std::min(fault.find(','), fault.size());
  const std::size_t number = std::stoul(fault.substr(colon + 1, end - colon - 1)) + stand_in_operations();
  return fault.substr(0, colon + 1) + std::to_string(number) + fault.substr(end);
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
  // Long enough for a busy machine if nothing hangs. The devices must be connected within a quarter of it.
  const bool hangs = value.starts_with("hang") || value == "connect" || value == "destroy";
  const bool fails_and_hangs = value.ends_with(",abort") || value.ends_with(",destroy");
  const std::chrono::seconds limit(hangs ? 2 : fails_and_hangs ? 5 : 15);
  const bool fails = launch.world().rank() == rank;
  const bool is_of_memory = name == "CUDA_STAND_IN_MEMORY";  // the first connection needs more
  const bool is_later = is_of_memory || order == "mesh";
  const bool is_at_start = order == "start" || (value.find(':') == std::string::npos && !is_later);
  const bool hangs_at_start = value == "connect" || (order == "start" && hangs);
  const bool fails_at_start = order == "start" || value == "init";  // the other rank then waits for a quarter of it
  launch.set_time_limit(std::chrono::seconds(hangs_at_start ? 4 : fails_at_start ? 20 : 400));
  if (fails && is_at_start) ::setenv(name.c_str(), value.c_str(), 1);
  report_errors(launch, [&] {
    Kokkos::InitializationSettings settings;
    settings.set_num_threads(1);
    settings.set_disable_warnings(true);
    const Kokkos::ScopeGuard kokkos(settings);
    connect(launch, order);
    if (order != "start" && order != "mesh") launch.set_time_limit(limit);
    if (fails && !is_at_start) ::setenv(name.c_str(), counted_from_now(value).c_str(), 1);
    std::optional<Mesh> mesh;
    if (order == "mesh") mesh.emplace(launch.world(), 2).connect(ExecutionSpace());
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
