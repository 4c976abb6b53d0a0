#include "tasks/interface/attention_choice.hpp"

#include "core/base/error.hpp"
#include "core/device.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

AttentionKernel attention_kernel(const TaskConfig& configured, Precision precision, std::size_t head_size) {
  if (!configured.attention) {
    const std::optional<DeviceInfo> device = Kokkos::is_initialized() ? device_in_use() : std::nullopt;
    return fastest_attention(precision, head_size, device ? device->capability : 0);
  }
  const std::string obstacle = attention_obstacle(*configured.attention, precision, head_size);
  if (!obstacle.empty()) {
    fail(fmt::format("--attention {}: {}; use --attention {}", to_string(*configured.attention), obstacle,
                     to_string(AttentionKernel::portable)));
  }
  return *configured.attention;
}

}  // namespace mylos::tasks
