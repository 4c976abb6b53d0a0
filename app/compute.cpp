#include "app/compute.hpp"

#include "core/device.hpp"
#include "core/error.hpp"
#include "data/files.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace mylos::app {
namespace {

/// More than any node has; beyond it OpenMP ends the program with a message of its own, or none.
constexpr std::size_t most_threads = 1024;

/// OMP_NUM_THREADS, or 0 where it is not set; a list ("4,2") counts by its first. Errors: not a number of threads.
std::size_t threads_from_environment() {
  const char* value = std::getenv("OMP_NUM_THREADS");
  if (value == nullptr || *value == '\0') return 0;
  const std::string_view text(value);
  const std::string_view first = text.substr(0, text.find(','));
  std::size_t threads = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), threads);
  if (error == std::errc() && end == first.data() + first.size() && threads >= 1 && threads <= most_threads) {
    return threads;
  }
  fail(fmt::format("OMP_NUM_THREADS={}: expected a number of threads from 1 to {}", data::printable(text),
                   most_threads));
}

Kokkos::InitializationSettings settings(std::size_t threads) {
  Kokkos::InitializationSettings settings;
  // Kokkos advises OMP_PROC_BIND, which would tie every unpinned process of a shared node to the same cores.
  settings.set_disable_warnings(true);
  settings.set_num_threads(static_cast<int>(threads));
  return settings;
}

}  // namespace

ComputeScope::ComputeScope() : ComputeScope(default_threads()) {}
ComputeScope::ComputeScope(std::size_t threads) : guard_(settings(threads)) {}

std::size_t default_threads() {
  if (std::string_view(ExecutionSpace::name()) == "Serial") return 1;
  const std::size_t asked = threads_from_environment();
  return asked > 0 ? asked : usable_cpus();
}

std::size_t usable_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines with more CPUs than the fixed-size mask has; then the library knows.
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return static_cast<std::size_t>(CPU_COUNT(&mask));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace mylos::app
