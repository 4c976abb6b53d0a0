#pragma once

namespace mylos {

/// By default, Kokkos waits for the device before each callback of a tool that the program registers. It does not wait
/// if it is initialized during the lifetime of this object. A tool that KOKKOS_TOOLS_LIBS loads decides for itself.
class UnfencedTools {
 public:
  UnfencedTools();
  ~UnfencedTools();
  UnfencedTools(const UnfencedTools&) = delete;
  UnfencedTools& operator=(const UnfencedTools&) = delete;
};

}  // namespace mylos
