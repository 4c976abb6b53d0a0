#include "core/base/process/threads.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <latch>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"

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
  limits.emplace_back("the job's control group may have a lower limit (pids.max)");
  return fmt::format("no thread could be started: {}; raise the limit, or set OMP_NUM_THREADS to fewer",
                     fmt::join(limits, ", "));
}

void check_threads(std::size_t count) {
  std::latch over(1);
  std::vector<pthread_t> threads;
  threads.reserve(count);
  // These threads allocate nothing: the C library would keep an arena of addresses for each that does.
  const auto wait = [](void* latch) -> void* {
    static_cast<std::latch*>(latch)->wait();
    return nullptr;
  };
  int error = 0;
  while (error == 0 && threads.size() < count) {
    pthread_t thread{};
    error = ::pthread_create(&thread, nullptr, wait, &over);
    if (error == 0) threads.push_back(thread);
  }
  over.count_down();
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  if (error != 0) fail(no_thread_text());
}

}  // namespace mylos
