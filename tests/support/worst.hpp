#pragma once

#include <cmath>

namespace mylos::tests {

/// The larger of two errors, and NaN where either is: std::max drops a NaN that comes second.
inline double worse_of(double worst, double error) { return std::isnan(worst) || error <= worst ? worst : error; }

}  // namespace mylos::tests
