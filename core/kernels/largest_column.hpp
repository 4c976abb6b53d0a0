#pragma once

#include "core/device.hpp"

/// The most likely class for each row of logits. Deterministic.
namespace mylos {

/// largest (R) = column of the largest element of each row of x (R, C), the first if several are equal; as a float,
/// which is exact below 2^24 columns. 0 if all elements are NaN.
void largest_column(const ExecutionSpace& space, const ConstMatrix<float>& x, const Vector<float>& largest);

}  // namespace mylos
