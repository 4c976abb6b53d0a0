#include "core/tool_fences.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace mylos {

namespace tools = Kokkos::Tools::Experimental;

UnfencedTools::UnfencedTools() {
  tools::set_request_tool_settings_callback(
      [](std::uint32_t, tools::ToolSettings* settings) { settings->requires_global_fencing = false; });
}

UnfencedTools::~UnfencedTools() { tools::set_request_tool_settings_callback(nullptr); }

}  // namespace mylos
