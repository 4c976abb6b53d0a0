#pragma once

#include "core/device.hpp"

/// The likeliest class of each row of logits. Deterministic.
namespace mylos {

/// largest (R) = the column of the largest element of each row of x (R, C), the first of equals; as a float, which is
/// exact below 2^24 columns. 0 where no element is a number.
void largest_column(const ExecutionSpace& space, const ConstMatrix<float>& x, const Vector<float>& largest);

}  // namespace mylos
