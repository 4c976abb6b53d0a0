#include "core/device.hpp"

/// Host builds: there are no devices.
namespace mylos {

std::vector<DeviceInfo> usable_devices() { return {}; }

std::optional<DeviceInfo> device_in_use() { return std::nullopt; }

std::size_t free_device_memory() { return 0; }

std::size_t used_device_memory() { return 0; }

ExecutionSpace make_queue() { return {}; }

void LaunchMark::set(const ExecutionSpace&) {}

void LaunchMark::wait() const {}

void LaunchMark::hold_up(const ExecutionSpace&) const {}

}  // namespace mylos
