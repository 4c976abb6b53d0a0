#include "tasks/interface/attention_choice.hpp"

#include "core/base/error.hpp"
#include "core/device.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

AttentionKernel attention_kernel(const TaskConfig& configured, Precision precision, std::size_t head_size,
                                 const Notice& notice) {
  if (!configured.attention) {
    const std::optional<DeviceInfo> device = device_in_use();
    const AttentionKernel fastest = fastest_attention(precision, head_size, device ? device->capability : 0);
    if (notice && fastest != AttentionKernel::portable) {
      notice(fmt::format("attention: {}, the fastest on this GPU; --attention selects another", to_string(fastest)));
    }
    return fastest;
  }
  const std::string obstacle = attention_obstacle(*configured.attention, precision, head_size);
  if (!obstacle.empty()) {
    fail(fmt::format("--attention {}: {}; use --attention {}", to_string(*configured.attention), obstacle,
                     to_string(AttentionKernel::portable)));
  }
  return *configured.attention;
}

}  // namespace mylos::tasks
