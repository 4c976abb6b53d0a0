#pragma once

#include "core/base/precision.hpp"
#include "core/device.hpp"

#include <string>

/// Reasons why a build cannot use a machine's devices, in one line that says what to change; empty if there are none.
/// The functions are pure, so that they can be tested without a device.
namespace mylos {

/// The result of looking for devices.
struct DeviceSearch {
  bool has_driver = false;    ///< the driver's library was found
  bool driver_serves = true;  ///< its version suffices for this build
  int driver_version = 0;     ///< 12040 supports 12.4
  int needed_version = 0;     ///< CUDA version of the build's toolkit
  int devices = 0;
  const char* visible = nullptr;  ///< CUDA_VISIBLE_DEVICES; null if not set
};

std::string search_obstacle(const DeviceSearch& search);

/// Checks a device for a build for compute capability `built_for` (80 is 8.0) and later.
std::string architecture_obstacle(const DeviceInfo& device, int built_for);

/// Checks a device for a run in this precision; `tf32`: float products are rounded to TF32.
std::string precision_obstacle(const DeviceInfo& device, Precision precision, bool tf32);

}  // namespace mylos
