#pragma once

#include "core/random.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/worst.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

/// Compares the gradients of models with a reference and with each other.
namespace mylos::tests {

inline double norm_of(const Values& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

inline double largest_of(const Values& x) {
  double largest = 0.0;
  for (const double value : x) largest = worse_of(largest, std::fabs(value));
  return largest;
}

/// Compares `gradient` with central differences of `loss`, which reads `x`: along the gradient itself, in which every
/// element takes part, and for three single elements. `noise` bounds the float rounding error of an element.
template <class Loss>
void expect_gradient(Values& x, const Values& gradient, const Loss& loss, double noise, const std::string& what) {
  ASSERT_EQ(x.size(), gradient.size()) << what;
  const double length = norm_of(gradient), step = 1e-5;
  const Values center = x;
  const auto slope = [&](const auto& direction) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = center[i] + step * direction(i);
    const double above = loss();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = center[i] - step * direction(i);
    const double below = loss();
    x = center;
    return (above - below) / (2.0 * step);
  };
  const double elements = std::sqrt(static_cast<double>(x.size()));
  if (length > noise * elements) {
    EXPECT_NEAR(slope([&](std::size_t i) { return gradient[i] / length; }), length, 1e-4 * length + noise * elements)
        << what << " along its gradient";
  }
  for (std::size_t draw = 0; draw < 3; ++draw) {
    const std::size_t element = uniform_below(x.size(), 77, x.size(), draw);
    EXPECT_NEAR(slope([&](std::size_t i) { return i == element ? 1.0 : 0.0; }), gradient[element],
                1e-4 * largest_of(gradient) + noise)
        << what << " element " << element;
  }
}

/// Returns the cosine of the angle between two vectors.
inline double cosine(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / (norm_of(a) * norm_of(b));
}

/// Expects that two gradients have a cosine above 1 - `angle`, and norms that agree to the relative tolerance `length`.
inline void expect_same_gradient(const Values& gradient, const Values& exact, double angle, double length,
                                 const std::string& name) {
  EXPECT_GT(cosine(gradient, exact), 1.0 - angle) << name;
  EXPECT_NEAR(norm_of(gradient) / norm_of(exact), 1.0, length) << name;
}

}  // namespace mylos::tests
