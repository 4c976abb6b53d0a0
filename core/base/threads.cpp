#include "core/base/threads.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <latch>
#include <optional>
#include <vector>

#include "core/base/quantities.hpp"

namespace mylos {
namespace {

/// Returns the soft limit; nullopt if there is none.
template <class Resource>
std::optional<std::size_t> limit_of(Resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace

std::string no_thread_text() {
  std::vector<std::string> limits;
  const auto processes = limit_of(RLIMIT_NPROC);
  if (processes && ::geteuid() != 0) {
    limits.push_back(fmt::format("ulimit -u allows {} threads of this user", *processes));
  }
  if (const auto space = limit_of(RLIMIT_AS)) {
    limits.push_back(fmt::format("ulimit -v allows {} of address space", bytes_text(*space)));
  }
  if (limits.empty()) limits.emplace_back("a limit of the system or of this job (pids.max of its control group)");
  return fmt::format("no thread could be started: {}; raise the limit, or set OMP_NUM_THREADS to fewer",
                     fmt::join(limits, ", "));
}

void check_threads(std::size_t count) {
  std::latch over(1);
  std::vector<std::thread> threads;
  const auto end = [&] {
    over.count_down();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    while (threads.size() < count) threads.push_back(start_thread([&] { over.wait(); }));
  } catch (...) {
    end();
    throw;
  }
  end();
}

}  // namespace mylos
