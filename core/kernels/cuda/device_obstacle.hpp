#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <string>

/// What stands between a build and the devices of a machine, in one line that says what to change; empty where nothing
/// does. Functions of facts that others ask for, so that they can be tested where there is no device.
namespace mylos {

/// What was found when devices were looked for.
struct DeviceSearch {
  bool has_driver = false;    ///< its library is there
  bool driver_serves = true;  ///< what this build needs
  int driver_version = 0;     ///< 12040 serves 12.4
  int needed_version = 0;     ///< of the toolkit that the build was made with
  int devices = 0;
  const char* visible = nullptr;  ///< CUDA_VISIBLE_DEVICES, where it is set
};

std::string search_obstacle(const DeviceSearch& search);

/// A device, in a build for compute capability `built_for` (80 is 8.0) and later ones.
std::string architecture_obstacle(const DeviceInfo& device, int built_for);

/// A run in this precision, whose float products are rounded to TF32 where `tf32` is set.
std::string precision_obstacle(const DeviceInfo& device, Precision precision, bool tf32);

}  // namespace mylos
