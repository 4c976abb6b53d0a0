#include "core/base/text/standard_output.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/launch/launcher.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

/// For test_watch.cpp: ranks of which some fail in their third step. Usage: failing_ranks HOW DIRECTORY [RANK...]; the
/// default is the last rank. Each rank writes its process id to a file in the directory.
namespace {

std::atomic<bool> sends_fail = false;
/// Processes that are continued when the launcher is asked to end all ranks, and that exist for a while after it.
std::vector<pid_t> revived;
constexpr std::chrono::milliseconds abort_takes{2500};
constexpr std::string_view escapes = "a plug\x1b]0;t\x07 was pulled";

}  // namespace

/// Override functions of the MPI library, which remain available under their profiling names (PMPI_*).
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,  // NOLINT(readability-identifier-naming)
              MPI_Comm ranks, MPI_Request* request) {
  return sends_fail ? MPI_ERR_OTHER : PMPI_Isend(data, count, type, to, tag, ranks, request);
}
int MPI_Error_string(int code, char* text, int* length) {  // NOLINT(readability-identifier-naming)
  if (!sends_fail) return PMPI_Error_string(code, text, length);
  *length = static_cast<int>(escapes.copy(text, MPI_MAX_ERROR_STRING));
  return MPI_SUCCESS;
}
int MPI_Abort(MPI_Comm ranks, int code) {  // NOLINT(readability-identifier-naming)
  for (const pid_t process : revived) ::kill(process, SIGCONT);
  if (!revived.empty()) std::this_thread::sleep_for(abort_takes);
  return PMPI_Abort(ranks, code);
}

namespace mylos::parallel {
namespace {

void fail_as(const std::string& how, Communicator& world) {
  if (how.starts_with("stop")) std::raise(SIGSTOP);
  if (how == "kill") std::raise(SIGKILL);
  if (how == "throw") throw std::runtime_error("this rank's own error");
  if (how == "exit") std::_Exit(0);
  if (how == "compute") std::this_thread::sleep_for(std::chrono::hours(1));
  if (how.starts_with("files")) {
    const FileWork slow;
    for (int i = 0; how == "files-work" && i < 80; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (how == "files") std::this_thread::sleep_for(std::chrono::seconds(4));
    if (how == "files-hang") std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (how == "elsewhere") world.barrier("the wrong place");
}

void run(const std::string& how, const std::string& directory, const std::vector<std::size_t>& failing) {
  std::ofstream(fmt::format("{}/{}", directory, launched_rank(process_environment))) << ::getpid() << '\n';
  // A rank that is gone is noticed long before the limit.
  const bool is_gone = how == "exit" || how == "kill";
  const std::chrono::seconds limit(is_gone ? 600 : how.starts_with("files") ? 1 : 2);
  // Calls inside MPI are given 15 s more, of which a test of these does not wait for all.
  const bool stops_in_mpi = std::getenv("MYLOS_STOP_IN") != nullptr;
  Launch launch{stops_in_mpi ? std::chrono::seconds(-10) : limit};
  launch.set_time_limit(limit);
  Communicator& world = launch.world();
  const bool last = world.rank() + 1 == world.size();
  const bool fails = failing.empty() ? last : std::ranges::find(failing, world.rank()) != failing.end();
  if (how == "stop-revived") {
    world.barrier("until each process is written down");
    for (const std::size_t rank : failing) {
      std::ifstream(fmt::format("{}/{}", directory, rank)) >> revived.emplace_back();
    }
  }
  Kokkos::InitializationSettings settings;
  settings.set_num_threads(1);
  settings.set_disable_warnings(true);
  const Kokkos::ScopeGuard kokkos(settings);
  const ExecutionSpace space;
  const Vector<float> gradients("test::gradients", 1 << 20);
  for (std::size_t step = 1; step <= 5; ++step) {
    launch.note_step(step);
    if (step == 3 && how == "all-throw") throw std::runtime_error("the same error on every rank");
    if (step == 3 && fails) fail_as(how, world);
    if (step == 3 && how.ends_with("split")) world.split(world.rank() % 2, world.rank())->barrier("one half");
    world.all_reduce(space, buffer_of(gradients), "layer 3 gradients").wait(space);
  }
  if (how == "results") {
    print("the results\n");
    launch.set_exit_code(85);
  }
  sends_fail = how == "last barrier";
}

}  // namespace
}  // namespace mylos::parallel

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    std::vector<std::size_t> failing;
    for (int i = 3; i < argc; ++i) failing.push_back(std::stoul(argv[i]));
    mylos::parallel::run(argv[1], argv[2], failing);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mylos: error: %s\n", error.what());
    return 1;
  }
}
