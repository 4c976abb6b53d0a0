#pragma once

#include "core/base/precision.hpp"
#include "core/device.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

/// Reasons why a build cannot use a machine's devices, in one line that says what to change; empty if there are none.
/// The functions are pure, so that they can be tested without a device.
namespace mylos {

/// A vendor's names for what a machine must have.
struct GpuVendor {
  std::string_view name, driver, toolkit;
};
inline constexpr GpuVendor nvidia{"NVIDIA", "libcuda.so.1", "CUDA"}, amd{"AMD", "/dev/kfd", "HIP"};

/// Returns those of the variables that the environment sets: " (CUDA_VISIBLE_DEVICES is '0')"; empty if it sets none.
std::string shown_variables(std::initializer_list<const char*> names);

/// The result of looking for devices.
struct DeviceSearch {
  GpuVendor vendor = nvidia;
  bool has_driver = false;    ///< the driver's library was found
  bool driver_serves = true;  ///< its version suffices for this build
  int driver_version = 0;     ///< 12040 supports 12.4
  int needed_version = 0;     ///< that of the build's toolkit
  int devices = 0;
  std::string visible = {};  ///< see shown_variables
};

std::string search_obstacle(const DeviceSearch& search);

/// Checks a device for a build for `built_for` and, if that is NVIDIA's, later ones.
std::string architecture_obstacle(const DeviceInfo& device, const GpuArchitecture& built_for);

/// Checks a device for a run in this precision; `tf32`: float products are rounded to TF32.
std::string precision_obstacle(const DeviceInfo& device, Precision precision, bool tf32);

}  // namespace mylos
