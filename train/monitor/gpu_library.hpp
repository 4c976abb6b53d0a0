#pragma once

#include "train/monitor/gpu_record.hpp"

#include <memory>
#include <string>

/// The libraries by which vendors report what GPUs do. NVML comes with NVIDIA's driver, ROCm SMI with ROCm. Both are
/// loaded at run time, so any build can use them. nvml.cpp and rocm_smi.cpp declare their functions.
namespace mylos::train {

class GpuLibrary {
 public:
  using Device = void*;

  virtual ~GpuLibrary() = default;
  /// Returns the GPU or part of a GPU with this id (core/device.hpp); null if this process does not see it.
  virtual Device find(const std::string& id) const = 0;
  /// Returns the device's name; empty if it is not reported.
  virtual std::string name(Device device) const = 0;
  /// Reads the device. `energy` counts from when the driver was loaded, on GPUs from Volta on; index and name are not
  /// set. Values that the driver does not report (on a MIG instance, or without permission) are nullopt. Errors:
  /// std::runtime_error with a one-line message if the GPU is lost or its driver fails.
  virtual GpuReading read(Device device) const = 0;
};

/// Loads NVML, the source of nvidia-smi's data. Errors: std::runtime_error with a one-line message if it is missing or
/// fails to initialise.
std::unique_ptr<const GpuLibrary> open_nvml(const std::string& file = "libnvidia-ml.so.1");
/// The same for ROCm SMI, the source of rocm-smi's data; an empty name stands for the usual files.
std::unique_ptr<const GpuLibrary> open_rocm_smi(const std::string& file = {});

}  // namespace mylos::train
