#pragma once

#include "core/kernels/updates/optimizer.hpp"

namespace mylos::tests {

/// Returns the control of an update on the device.
inline Vector<UpdateControl> update_control(double gradient_scale = 1.0, bool skips = false,
                                            bool is_after_skip = false) {
  const Vector<UpdateControl> control("test::control", 1);
  const auto host = Kokkos::create_mirror_view(control);
  host(0) = {gradient_scale, skips ? 1 : 0, is_after_skip ? 1 : 0};
  Kokkos::deep_copy(control, host);
  return control;
}

}  // namespace mylos::tests
