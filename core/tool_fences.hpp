#pragma once

namespace mylos {

/// If Kokkos is initialized during the lifetime of this object, it does not wait for the device before each callback of
/// a tool that the program registers, as it does by default. A tool that KOKKOS_TOOLS_LIBS loads decides for itself.
class UnfencedTools {
 public:
  UnfencedTools();
  ~UnfencedTools();
  UnfencedTools(const UnfencedTools&) = delete;
  UnfencedTools& operator=(const UnfencedTools&) = delete;
};

}  // namespace mylos
