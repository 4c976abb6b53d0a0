#include "app/compute.hpp"

#include "core/device.hpp"
#include "parallel/processors.hpp"

#include <string_view>

namespace mylos::app {
namespace {

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
  const std::size_t asked = parallel::threads_from_environment();
  return asked > 0 ? asked : usable_cpus();
}

std::size_t usable_cpus() { return parallel::allowed_processors().count(); }

}  // namespace mylos::app
