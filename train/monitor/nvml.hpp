#pragma once

#include <memory>
#include <optional>
#include <string>

/// NVIDIA's management library, which tells what nvidia-smi shows. It comes with the driver and is looked for at run
/// time, so that any build may ask; what is declared of it is in nvml.cpp.
namespace mylos::train {

/// What a GPU does; what its driver does not tell (on a MIG instance, or without permission) is absent.
struct GpuState {
  std::optional<double> utilization = {};   ///< percent of the last moments in which something ran
  std::optional<double> memory = {};        ///< bytes in use
  std::optional<double> memory_total = {};  ///< bytes
  std::optional<double> power = {};         ///< watts
  std::optional<double> energy = {};        ///< joules since the driver was loaded; from Volta on
};

class Nvml {
 public:
  static constexpr const char* usual_file = "libnvidia-ml.so.1";
  using Device = void*;

  /// Errors: std::runtime_error of one line, where there is no such library or it does not start.
  explicit Nvml(const std::string& file = usual_file);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The GPU, or the MIG instance, that has this id (core/device.hpp); null where this process does not see it.
  Device find(const std::string& id) const;
  /// Empty where it is not told.
  std::string name(Device device) const;
  /// Errors: std::runtime_error of one line, where the GPU is lost or its driver fails.
  GpuState state(Device device) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;
};

}  // namespace mylos::train
