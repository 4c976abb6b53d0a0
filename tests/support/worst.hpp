#pragma once

#include <cmath>

namespace mylos::tests {

/// Returns the larger of two errors, or NaN if either is NaN. std::max would drop a NaN in its second argument.
inline double worse_of(double worst, double error) { return std::isnan(worst) || error <= worst ? worst : error; }

}  // namespace mylos::tests
