#include "core/device.hpp"

#include <chrono>

/// Host builds: there are no devices.
namespace mylos {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point time_of(const std::shared_ptr<void>& moment) {
  return *static_cast<Clock::time_point*>(moment.get());
}

}  // namespace

std::vector<DeviceInfo> usable_devices() { return {}; }

std::optional<DeviceInfo> device_in_use() { return std::nullopt; }

void check_kernel_arguments() {}

std::size_t free_device_memory() { return 0; }

std::size_t used_device_memory() { return 0; }

ExecutionSpace make_queue() { return {}; }

void LaunchMark::set(const ExecutionSpace&) {}

void LaunchMark::wait() const {}

void LaunchMark::hold_up(const ExecutionSpace&) const {}

void LaunchTime::set(const ExecutionSpace&) {
  const Clock::time_point now = Clock::now();
  if (moment_ == nullptr) moment_ = std::make_shared<Clock::time_point>();
  *static_cast<Clock::time_point*>(moment_.get()) = now;
}

double LaunchTime::seconds_since(const LaunchTime& earlier) const {
  return std::chrono::duration<double>(time_of(moment_) - time_of(earlier.moment_)).count();
}

}  // namespace mylos
