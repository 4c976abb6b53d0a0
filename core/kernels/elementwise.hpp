#pragma once

#include "core/device.hpp"

/// Sums of flat arrays.
namespace mylos {

/// y += x. Same extents.
void add(const ExecutionSpace& space, const ConstVector<float>& x, const Vector<float>& y);

}  // namespace mylos
