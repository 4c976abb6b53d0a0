#include "app/program/compute.hpp"

#include "core/base/error.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/process/threads.hpp"
#include "core/kernels/gpu/device_obstacle.hpp"
#include "core/tool_fences.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::app {
namespace {

Kokkos::InitializationSettings settings(std::size_t threads, std::size_t device) {
  Kokkos::InitializationSettings settings;
  // Suppresses Kokkos' advice to set OMP_PROC_BIND, which would bind all unpinned processes of a shared node to the
  // same cores.
  settings.set_disable_warnings(true);
  settings.set_num_threads(static_cast<int>(threads));
  if constexpr (!runs_on_host) settings.set_device_id(static_cast<int>(device));
  return settings;
}

Kokkos::ScopeGuard start_kokkos(const Kokkos::InitializationSettings& settings) {
  check_threads(static_cast<std::size_t>(settings.get_num_threads()) - 1);
  const UnfencedTools unfenced;
  return Kokkos::ScopeGuard(settings);
}

/// Returns the index of the first device, or 0 if this build needs none.
std::size_t first_device() {
  const std::vector<DeviceInfo> devices = usable_devices();
  return devices.empty() ? 0 : devices.front().index;
}

}  // namespace

ComputeScope::ComputeScope() : guard_(start_kokkos(settings(default_threads(), first_device()))) {
  check_kernel_arguments();
}
ComputeScope::ComputeScope(const parallel::Launch& launch)
    : guard_(start_kokkos(settings(launch.threads(), launch.device()))) {
  check_kernel_arguments();
}

void check_precision(Precision precision, bool tf32) {
  const std::optional<DeviceInfo> device = device_in_use();
  if (!device) return;
  if (const std::string obstacle = precision_obstacle(*device, precision, tf32); !obstacle.empty()) fail(obstacle);
}

std::string precision_remark(Precision precision, std::span<const std::string> cpu_features) {
  if (precision != Precision::bfloat16 || cpu_features.empty()) return {};
  for (const char* name : {"avx512bf16", "bf16"}) {  // CPUs with AMX have the former, too
    if (std::ranges::find(cpu_features, name) != cpu_features.end()) return {};
  }
  return "the CPU has no instructions for bfloat16: steps take about 1.1 times as long in it as in float";
}

std::size_t default_threads() {
  if (std::string_view(ExecutionSpace::name()) == "Serial") return 1;
  const std::size_t asked = threads_from_environment();
  return asked > 0 ? asked : usable_cpus();
}

std::size_t usable_cpus() { return allowed_processors().count(); }

}  // namespace mylos::app
