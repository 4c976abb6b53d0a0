#include "core/base/error.hpp"
#include "core/base/process/shared_library.hpp"
#include "train/monitor/gpu_library.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

/// ROCm SMI, which lists all GPUs of a node, whichever this process may use.
namespace mylos::train {
namespace {

using Index = std::uint32_t;
using Count = std::uint64_t;

/// Functions as declared in rocm_smi.h of ROCm 6, with their names here.
#define MYLOS_ROCM_SMI_FUNCTIONS(X)                                            \
  X(initialize_, rsmi_init, (Count flags))                                     \
  X(shut_down_, rsmi_shut_down, ())                                            \
  X(count_, rsmi_num_monitor_devices, (Index*))                                \
  X(pci_id_, rsmi_dev_pci_id_get, (Index, Count*))                             \
  X(name_, rsmi_dev_name_get, (Index, char*, std::size_t))                     \
  X(busy_, rsmi_dev_busy_percent_get, (Index, Index * percent))                \
  X(memory_busy_, rsmi_dev_memory_busy_percent_get, (Index, Index * percent))  \
  X(memory_used_, rsmi_dev_memory_usage_get, (Index, int kind, Count* bytes))  \
  X(memory_total_, rsmi_dev_memory_total_get, (Index, int kind, Count* bytes)) \
  X(power_, rsmi_dev_power_get, (Index, Count * microwatts, int* kind))        \
  X(energy_, rsmi_dev_energy_count_get, (Index, Count * units, float* microjoules, Count*))

constexpr int success = 0;        // rsmi_status_t
constexpr int device_memory = 0;  // rsmi_memory_type_t

Index index_of(GpuLibrary::Device device) { return static_cast<Index>(reinterpret_cast<std::uintptr_t>(device) - 1); }

/// Returns the value that `ask` writes, in units of `unit`; nullopt if the driver does not report it.
template <class Value, class Ask>
std::optional<double> reported(double unit, const Ask& ask) {
  Value value{};
  return ask(&value) == success ? std::optional(unit * static_cast<double>(value)) : std::nullopt;
}

class RocmSmi final : public GpuLibrary {
 public:
  explicit RocmSmi(const SharedLibrary& library) {
    if (!library.obstacle().empty()) fail(fmt::format("ROCm SMI cannot be loaded ({})", library.obstacle()));
#define MYLOS_ROCM_SMI_FIND(member, function, arguments) \
  ensure(library.find(#function, member), "ROCm SMI has no " #function);
    MYLOS_ROCM_SMI_FUNCTIONS(MYLOS_ROCM_SMI_FIND)
#undef MYLOS_ROCM_SMI_FIND
    if (const int result = initialize_(0); result != success) fail(fmt::format("ROCm SMI does not start: {}", result));
  }
  ~RocmSmi() override { shut_down_(); }
  RocmSmi(const RocmSmi&) = delete;
  RocmSmi& operator=(const RocmSmi&) = delete;

  /// Ids begin with the address on the PCI bus (core/kernels/hip/device_description.cpp).
  Device find(const std::string& id) const override {
    Index devices = 0;
    count_(&devices);
    for (std::uintptr_t index = 0; index < devices; ++index) {
      Count address = 0;
      if (pci_id_(static_cast<Index>(index), &address) != success) continue;
      const Count bus = address >> 8 & 0xff, slot = address >> 3 & 0x1f;
      if (!id.starts_with(fmt::format("{:04x}:{:02x}:{:02x}-", address >> 32, bus, slot))) continue;
      return reinterpret_cast<Device>(index + 1);  // NOLINT(performance-no-int-to-ptr): not null
    }
    return nullptr;
  }

  std::string name(Device device) const override {
    std::array<char, 128> text{};
    return name_(index_of(device), text.data(), text.size() - 1) == success ? text.data() : "";
  }

  GpuReading read(Device device) const override {
    const Index index = index_of(device);
    float unit = 0.0f;
    GpuReading state;
    state.utilization = reported<Index>(1.0, [&](Index* value) { return busy_(index, value); });
    state.memory_utilization = reported<Index>(1.0, [&](Index* value) { return memory_busy_(index, value); });
    state.memory = reported<Count>(1.0, [&](Count* value) { return memory_used_(index, device_memory, value); });
    state.memory_total = reported<Count>(1.0, [&](Count* value) { return memory_total_(index, device_memory, value); });
    state.power = reported<Count>(1e-6, [&](Count* value) {
      int kind = 0;
      return power_(index, value, &kind);
    });
    state.energy = reported<Count>(1e-6, [&](Count* value) {
      Count time = 0;
      return energy_(index, value, &unit, &time);
    });
    if (state.energy) *state.energy *= static_cast<double>(unit);
    // The first of an MI250X's two devices reports the power of both; the counter of the second stays at 0.
    if (state.energy == 0.0) state.energy = state.power = std::nullopt;
    return state;
  }

 private:
#define MYLOS_ROCM_SMI_MEMBER(member, function, arguments) int(*member) arguments = nullptr;
  MYLOS_ROCM_SMI_FUNCTIONS(MYLOS_ROCM_SMI_MEMBER)
#undef MYLOS_ROCM_SMI_MEMBER
};

}  // namespace

std::unique_ptr<const GpuLibrary> open_rocm_smi(const std::string& file) {
  if (!file.empty()) return std::make_unique<const RocmSmi>(SharedLibrary(file.c_str()));
  // of ROCm from 6.0 on, and as distributions name it
  for (const char* usual : {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.1"}) {
    if (const SharedLibrary found(usual); found.obstacle().empty()) return std::make_unique<const RocmSmi>(found);
  }
  return std::make_unique<const RocmSmi>(SharedLibrary("librocm_smi64.so"));
}

}  // namespace mylos::train
