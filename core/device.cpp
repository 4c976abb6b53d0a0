#include "core/device.hpp"

/// A host build has no devices.
namespace mylos {

std::vector<DeviceInfo> usable_devices() { return {}; }

std::size_t free_device_memory() { return 0; }

}  // namespace mylos
