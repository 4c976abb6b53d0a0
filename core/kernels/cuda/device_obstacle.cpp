#include "core/kernels/cuda/device_obstacle.hpp"

#include "core/base/setting_error.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// Formats 13000 as "13.0".
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string capability_text(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

/// The first architecture with products of bfloat16 and TF32.
constexpr int ampere = 80;

}  // namespace

std::string search_obstacle(const DeviceSearch& search) {
  if (!search.has_driver) {
    return "this build computes on NVIDIA GPUs, and their driver (libcuda.so.1) is not on this machine; run it on a "
           "node "
           "with GPUs, or use a build for the CPU";
  }
  if (!search.driver_serves) {
    return fmt::format(
        "the NVIDIA driver here supports CUDA {}, but this build needs {}; ask for a newer driver, or build with an "
        "older "
        "CUDA toolkit",
        version_text(search.driver_version), version_text(search.needed_version));
  }
  if (search.devices > 0) return {};
  return fmt::format(
      "no GPU is visible here{}; ask the scheduler for one (--gpus-per-task=1), or use a build for the CPU",
      search.visible == nullptr ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", search.visible));
}

std::string architecture_obstacle(const DeviceInfo& device, int built_for) {
  if (device.capability >= built_for) return {};
  const std::string remedy = device.capability < 70 ? std::string("the oldest supported is 7.0: use another GPU")
                                                    : fmt::format("build with -DMYLOS_CUDA_ARCHITECTURE={}",
                                                                  device.capability < ampere ? 70 : ampere);
  return fmt::format("GPU {} ({}) has compute capability {}, but this build is for {} and later; {}", device.index,
                     device.name, capability_text(device.capability), capability_text(built_for), remedy);
}

std::string precision_obstacle(const DeviceInfo& device, Precision precision, bool tf32) {
  if (device.capability >= ampere) return {};
  const bool is_bfloat16 = precision == Precision::bfloat16;
  if (!is_bfloat16 && !tf32) return {};
  return fmt::format("{}: this GPU ({}) has compute capability {}, but 8.0 is needed; {}",
                     is_bfloat16 ? setting("precision", "bfloat16") : setting("tf32"), device.name,
                     capability_text(device.capability),
                     is_bfloat16 ? fmt::format("use {}, which it has", setting("precision", "half")) : "leave it out");
}

}  // namespace mylos
