#pragma once

#include <cmath>
#include <numbers>

namespace mylos::tests {

/// GELU computed with the error function, and its derivative.
inline double gelu_twin(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
inline double gelu_derivative_twin(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
}

}  // namespace mylos::tests
