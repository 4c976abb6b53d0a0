#include "tasks/interface/attention_choice.hpp"

#include "core/base/error.hpp"
#include "core/device.hpp"

#include <fmt/format.h>

namespace mylos::tasks {
namespace {

/// Fails if the run cannot use the kernel that it asks for.
void check_chosen(AttentionKernel kernel, const AttentionUse& use, int capability) {
  const std::string obstacle = attention_obstacle(kernel, use.precision, use.head_size, capability);
  if (!obstacle.empty()) {
    fail(fmt::format("--attention {}: {}; use --attention {}", to_string(kernel), obstacle,
                     to_string(AttentionKernel::portable)));
  }
  if (use.dropout > 0.0 && !has_dropout(kernel)) {
    fail(fmt::format(
        "--attention {}: it has no dropout, and that of this run is {:g}; use --dropout 0, or leave --attention out",
        to_string(kernel), use.dropout));
  }
}

}  // namespace

AttentionKernel attention_kernel(const TaskConfig& configured, const AttentionUse& use, const Notice& notice) {
  if (configured.attention == AttentionKernel::portable) return AttentionKernel::portable;
  const std::optional<DeviceInfo> device = device_in_use();
  const int capability = device ? device->capability : 0;
  if (configured.attention) {
    check_chosen(*configured.attention, use, capability);
    return *configured.attention;
  }
  const AttentionKernel fastest = fastest_attention(use.precision, use.head_size, capability);
  if (notice && fastest != AttentionKernel::portable) {
    notice(fmt::format("attention: {}, the fastest on this GPU; --attention selects another", to_string(fastest)));
  }
  return fastest;
}

AttentionKernel planned_attention(const TaskConfig& configured, Precision precision, std::size_t head_size) {
  return configured.attention.value_or(planned_attention_kernel(precision, head_size, configured.planned_capability));
}

}  // namespace mylos::tasks
