#include "core/base/error.hpp"
#include "core/base/process/shared_library.hpp"
#include "train/monitor/gpu_library.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace mylos::train {

namespace {

using Device = GpuLibrary::Device;

/// Functions as declared in nvml.h. The interface is stable within version 1 of the library.
struct NvmlFunctions {
  using Result = int;
  struct Utilization {
    unsigned gpu, memory;  // percent
  };
  struct Memory {
    unsigned long long total, available, used;  // bytes
  };

  Result (*initialize)() = nullptr;
  Result (*shut_down)() = nullptr;
  const char* (*error_string)(Result) = nullptr;
  Result (*find_by_uuid)(const char*, Device*) = nullptr;
  Result (*name)(Device, char*, unsigned) = nullptr;
  Result (*utilization)(Device, Utilization*) = nullptr;
  Result (*memory)(Device, Memory*) = nullptr;
  Result (*power)(Device, unsigned*) = nullptr;             // milliwatts
  Result (*energy)(Device, unsigned long long*) = nullptr;  // millijoules
};

// nvmlReturn_t
constexpr int nvml_success = 0, nvml_not_supported = 3, nvml_no_permission = 4, nvml_no_such_function = 13;

constexpr double milli = 1e-3;

template <class Function>
void look_up(const SharedLibrary& library, const std::string& file, const char* name, Function& function) {
  ensure(library.find(name, function), fmt::format("{} has no {}", file, name));
}

/// Returns the value written by `ask`; nullopt if the driver does not report it. Errors: `text` of the result code.
template <class Value, class Text, class Ask>
std::optional<Value> value_told(const Text& text, const Ask& ask) {
  Value value{};
  const int result = ask(&value);
  if (result == nvml_not_supported || result == nvml_no_permission || result == nvml_no_such_function)
    return std::nullopt;
  if (result != nvml_success) fail(fmt::format("NVML: {}", text(result)));
  return value;
}

/// Formats the 32 digits of an id as NVML does: 8-4-4-4-12.
std::string with_dashes(std::string id) {
  for (const std::size_t location : {8, 13, 18, 23}) {
    if (id.size() > location) id.insert(location, 1, '-');
  }
  return id;
}

class Nvml final : public GpuLibrary {
 public:
  explicit Nvml(const std::string& file);
  ~Nvml() override { functions_.shut_down(); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Device find(const std::string& id) const override;
  std::string name(Device device) const override;
  GpuReading read(Device device) const override;

 private:
  NvmlFunctions functions_;
};

Nvml::Nvml(const std::string& file) {
  const SharedLibrary library(file.c_str());
  if (!library.obstacle().empty()) fail(fmt::format("NVML cannot be loaded ({})", library.obstacle()));
  look_up(library, file, "nvmlInit_v2", functions_.initialize);
  look_up(library, file, "nvmlShutdown", functions_.shut_down);
  look_up(library, file, "nvmlErrorString", functions_.error_string);
  look_up(library, file, "nvmlDeviceGetHandleByUUID", functions_.find_by_uuid);
  look_up(library, file, "nvmlDeviceGetName", functions_.name);
  look_up(library, file, "nvmlDeviceGetUtilizationRates", functions_.utilization);
  look_up(library, file, "nvmlDeviceGetMemoryInfo", functions_.memory);
  look_up(library, file, "nvmlDeviceGetPowerUsage", functions_.power);
  look_up(library, file, "nvmlDeviceGetTotalEnergyConsumption", functions_.energy);
  const int result = functions_.initialize();
  if (result != nvml_success) fail(fmt::format("NVML does not start: {}", functions_.error_string(result)));
}

Device Nvml::find(const std::string& id) const {
  for (const char* kind : {"GPU-", "MIG-"}) {
    Device device = nullptr;
    if (functions_.find_by_uuid((kind + with_dashes(id)).c_str(), &device) == nvml_success) return device;
  }
  return nullptr;
}

std::string Nvml::name(Device device) const {
  std::array<char, 96> name{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
  return functions_.name(device, name.data(), name.size()) == nvml_success ? name.data() : "";
}

GpuReading Nvml::read(Device device) const {
  const NvmlFunctions& nvml = functions_;
  const auto utilization = value_told<NvmlFunctions::Utilization>(
      nvml.error_string, [&](auto* value) { return nvml.utilization(device, value); });
  const auto memory =
      value_told<NvmlFunctions::Memory>(nvml.error_string, [&](auto* value) { return nvml.memory(device, value); });
  const auto power = value_told<unsigned>(nvml.error_string, [&](auto* value) { return nvml.power(device, value); });
  const auto energy =
      value_told<unsigned long long>(nvml.error_string, [&](auto* value) { return nvml.energy(device, value); });
  GpuReading reading;
  if (utilization) reading.utilization = utilization->gpu;
  if (utilization) reading.memory_utilization = utilization->memory;
  if (memory) reading.memory = static_cast<double>(memory->used);
  if (memory) reading.memory_total = static_cast<double>(memory->total);
  if (power) reading.power = milli * *power;
  if (energy) reading.energy = milli * static_cast<double>(*energy);
  return reading;
}

}  // namespace

std::unique_ptr<const GpuLibrary> open_nvml(const std::string& file) { return std::make_unique<const Nvml>(file); }

}  // namespace mylos::train
