#include "core/kernels/gpu/device_obstacle.hpp"

#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace mylos {
namespace {

/// Formats 13000 of CUDA as "13.0", and 50221153 of HIP as "5.2".
std::string version_text(const GpuVendor& vendor, int version) {
  const bool is_cuda = vendor.name == nvidia.name;
  return is_cuda ? fmt::format("{}.{}", version / 1000, version % 1000 / 10)
                 : fmt::format("{}.{}", version / 10'000'000, version / 100'000 % 100);
}

/// The first architecture of NVIDIA with products of bfloat16 and TF32.
constexpr int ampere = 80;

}  // namespace

std::string shown_variables(std::initializer_list<const char*> names) {
  std::string shown;
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr) shown += fmt::format("{}{} is '{}'", shown.empty() ? " (" : ", ", name, value);
  }
  return shown.empty() ? shown : shown + ")";
}

std::string search_obstacle(const DeviceSearch& search) {
  if (!search.has_driver) {
    return fmt::format(
        "this build computes on {} GPUs, and their driver ({}) is not on this machine; run it on a node with GPUs, or "
        "use a build for the CPU",
        search.vendor.name, search.vendor.driver);
  }
  if (!search.driver_serves) {
    return fmt::format(
        "the {0} driver here supports {1} {2}, but this build needs {3}; ask for a newer driver, or build with an "
        "older "
        "{1} toolkit",
        search.vendor.name, search.vendor.toolkit, version_text(search.vendor, search.driver_version),
        version_text(search.vendor, search.needed_version));
  }
  if (search.devices > 0) return {};
  return fmt::format(
      "no GPU is visible here{}; ask the scheduler for one (--gpus-per-task=1), or use a build for the CPU",
      search.visible);
}

std::string architecture_obstacle(const DeviceInfo& device, const GpuArchitecture& built_for) {
  const int number = device.architecture.number;
  if (device.architecture == built_for || (built_for.is_nvidia() && number >= built_for.number)) return {};
  if (built_for.is_amd()) {
    return fmt::format(
        "GPU {} ({}) is a {}, but this build is for {}; build with the preset for it, or use another GPU", device.index,
        device.name, to_string(device.architecture), to_string(built_for));
  }
  const std::string remedy =
      number < 70 ? std::string("the oldest supported is 7.0: use another GPU")
                  : fmt::format("build with -DMYLOS_CUDA_ARCHITECTURE={}", number < ampere ? 70 : ampere);
  return fmt::format("GPU {} ({}) has {}, but this build is for {} and later; {}", device.index, device.name,
                     to_string(device.architecture), short_name(built_for), remedy);
}

std::string precision_obstacle(const DeviceInfo& device, Precision precision, bool tf32) {
  if (device.architecture.is_amd()) {
    return tf32 ? fmt::format("{}: GPUs of AMD are not asked for it ({}); leave it out", setting("tf32"), device.name)
                : std::string();
  }
  if (device.architecture.is_nvidia(ampere)) return {};
  const bool is_bfloat16 = precision == Precision::bfloat16;
  if (!is_bfloat16 && !tf32) return {};
  return fmt::format("{}: this GPU ({}) has {}, but 8.0 is needed; {}",
                     is_bfloat16 ? setting("precision", "bfloat16") : setting("tf32"), device.name,
                     to_string(device.architecture),
                     is_bfloat16 ? fmt::format("use {}, which it has", setting("precision", "half")) : "leave it out");
}

}  // namespace mylos
