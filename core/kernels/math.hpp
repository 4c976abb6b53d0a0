#pragma once

#include <Kokkos_BitManipulation.hpp>
#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Elementary functions without branches, calls or tables, so that loops over them vectorise on every compiler without
/// -ffast-math, and give the same on every backend that contracts a * b + c alike.
namespace mylos {

/// e^x within 2 units in the last place; 0 below -87.33 (where results would be subnormal), infinity above 88.72, NaN
/// for NaN. Source: Cephes expf (Moshier), with the power of two added to the exponent's bits.
KOKKOS_INLINE_FUNCTION float exp_approximate(float x) {
  // Adding 1.5 * 2^23 leaves x / log(2), rounded to an integer n, in the lowest bits.
  constexpr float shifter = 12582912.0f;
  const float shifted = x * 1.44269504f + shifter;
  const float n = shifted - shifter;
  // r = x - n log(2), with log(2) in two parts, the first exact in a product with n.
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  const float scaled =
      Kokkos::bit_cast<float>(Kokkos::bit_cast<std::uint32_t>(p) + (Kokkos::bit_cast<std::uint32_t>(shifted) << 23));
  // The largest x with a finite result; beyond it this gives infinity, and NaN for NaN.
  const float bounded = x <= 88.7228317f ? scaled : x * Kokkos::bit_cast<float>(0x7f800000u);
  return x < -87.33f ? 0.0f : bounded;
}

/// The error function within 2 units in the last place. Source: N. Juffa's erff (BSD): an odd polynomial up to 0.9277,
/// 1 - exp(polynomial) above; both are computed and one is selected.
KOKKOS_INLINE_FUNCTION float erf_approximate(float x) {
  const std::uint32_t bits = Kokkos::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits & 0x80000000u;
  const float t = Kokkos::bit_cast<float>(bits ^ sign);
  const float s = x * x;

  float large = -1.72853470e-5f * t + 3.83197126e-4f;
  large = large * s + (-3.88396438e-3f * t + 2.42546219e-2f);
  large = large * t - 1.06777877e-1f;
  large = large * t - 6.34846687e-1f;
  large = large * t - 1.28717512e-1f;
  large = large * t - t;
  large = 1.0f - exp_approximate(large);
  large = t < 4.0f ? large : 1.0f;  // erf(3.92) rounds to 1; the polynomial turns upwards far beyond
  large = Kokkos::bit_cast<float>(Kokkos::bit_cast<std::uint32_t>(large) | sign);

  float small = -5.96761703e-4f;
  small = small * s + 4.99119423e-3f;
  small = small * s - 2.67681349e-2f;
  small = small * s + 1.12819925e-1f;
  small = small * s - 3.76125336e-1f;
  small = small * s + 1.28379166e-1f;
  small = small * x + x;

  return t > 0.927734375f ? large : small;  // NaN takes the small branch and stays NaN
}

/// x Phi(x) with the exact normal distribution Phi (Hendrycks, Gimpel 2016); absolute error below 2e-7 max(1, |x|).
KOKKOS_INLINE_FUNCTION float gelu(float x) { return x * (0.5f + 0.5f * erf_approximate(x * 0.70710678f)); }

/// Phi(x) + x phi(x), the derivative of `gelu`.
KOKKOS_INLINE_FUNCTION float gelu_derivative(float x) {
  const float density = 0.39894228f * exp_approximate(-0.5f * x * x);
  return 0.5f + 0.5f * erf_approximate(x * 0.70710678f) + x * density;
}

}  // namespace mylos
