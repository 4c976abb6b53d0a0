#pragma once

#include <memory>
#include <optional>
#include <string>

/// NVIDIA's management library, the source of nvidia-smi's data. It comes with the driver and is loaded at run time, so
/// any build can use it; its declarations are in nvml.cpp.
namespace mylos::train {

/// The state of a GPU. Values that the driver does not report (on a MIG instance, or without permission) are nullopt.
struct GpuState {
  std::optional<double> utilization = {};         ///< percent of the last sampling period in which a kernel ran
  std::optional<double> memory_utilization = {};  ///< percent of that period in which memory was read or written
  std::optional<double> memory = {};              ///< bytes in use
  std::optional<double> memory_total = {};        ///< bytes
  std::optional<double> power = {};               ///< watts
  std::optional<double> energy = {};              ///< joules since the driver was loaded; from Volta on
};

class Nvml {
 public:
  static constexpr const char* usual_file = "libnvidia-ml.so.1";
  using Device = void*;

  /// Loads the library. Errors: std::runtime_error with a one-line message if it is missing or fails to initialise.
  explicit Nvml(const std::string& file = usual_file);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Returns the GPU or MIG instance with this id (core/device.hpp); null if this process does not see it.
  Device find(const std::string& id) const;
  /// Returns the device's name; empty if it is not reported.
  std::string name(Device device) const;
  /// Reads the device's state. Errors: std::runtime_error with a one-line message if the GPU is lost or its driver
  /// fails.
  GpuState state(Device device) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;
};

}  // namespace mylos::train
