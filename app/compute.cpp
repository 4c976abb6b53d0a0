#include "app/compute.hpp"

#include "core/device.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace mylos::app {
namespace {

/// OMP_NUM_THREADS, or 0 where it is not a number; a list ("4,2") counts by its first.
std::size_t threads_from_environment() {
  const char* value = std::getenv("OMP_NUM_THREADS");
  const long threads = value == nullptr ? 0 : std::strtol(value, nullptr, 10);
  return threads > 0 ? static_cast<std::size_t>(threads) : 0;
}

Kokkos::InitializationSettings settings() {
  Kokkos::InitializationSettings settings;
  // Kokkos advises OMP_PROC_BIND, which would tie every unpinned process of a shared node to the same cores.
  settings.set_disable_warnings(true);
  settings.set_num_threads(static_cast<int>(default_threads()));
  return settings;
}

}  // namespace

ComputeScope::ComputeScope() : guard_(settings()) {}

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
