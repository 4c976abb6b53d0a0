#pragma once

#include <cmath>
#include <numbers>

namespace mylos::tests {

/// GELU computed with the error function.
inline double gelu_twin(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace mylos::tests
