#pragma once

#include "core/kernels/gpu/device_obstacle.hpp"

/// The part of core/kernels/gpu/device.cpp that depends on the vendor of the GPUs. core/kernels/cuda and
/// core/kernels/hip each implement it in a device_description.cpp.
namespace mylos::gpu {

/// Returns what a search for devices knows before it asks the vendor's runtime library.
DeviceSearch begin_search();

/// Returns the properties of a device. Errors: std::runtime_error.
DeviceInfo describe(int index);

/// Returns why kernels of this build do not run on a device; empty if they do.
std::string build_obstacle(const DeviceInfo& device);

}  // namespace mylos::gpu
