#pragma once

#include "train/monitor/gpu_record.hpp"

#include <memory>
#include <string>

/// NVIDIA's management library, the source of nvidia-smi's data. It comes with the driver and is loaded at run time, so
/// any build can use it; its declarations are in nvml.cpp.
namespace mylos::train {

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
  /// Reads the device. `energy` counts from when the driver was loaded, on GPUs from Volta on; index and name are not
  /// set. Values that the driver does not report (on a MIG instance, or without permission) are nullopt. Errors:
  /// std::runtime_error with a one-line message if the GPU is lost or its driver fails.
  GpuReading read(Device device) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;
};

}  // namespace mylos::train
