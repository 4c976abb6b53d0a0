#pragma once

#include "core/device_functions.hpp"

#include <Kokkos_BitManipulation.hpp>
#include <Kokkos_Macros.hpp>
#include <Kokkos_MathematicalFunctions.hpp>

#include <cstdint>

/// Elementary functions without branches, calls or tables, so that loops over them vectorise on every compiler without
/// -ffast-math. On hosts that contract a * b + c in the same way they give the same results. GPUs have an
/// instruction for powers of two, with which results that contain one may differ in their last bits.
namespace mylos {

// Operations per call of the functions below on a host, for the work of kernels (core/work.hpp).
inline constexpr double exp_flops = 21.0, exp2_flops = 16.0;
inline constexpr double gelu_flops = exp2_flops + 18.0, gelu_derivative_flops = exp2_flops + 25.0;

/// Returns e^x within 2 units in the last place; 0 below -87.33 (where results would be subnormal), infinity above
/// 88.72, NaN for NaN. Source: Cephes expf (Moshier), with the power of two added to the exponent's bits.
KOKKOS_INLINE_FUNCTION float exp_approximate(float x) {
  // Adding 1.5 * 2^23 leaves n, x / log(2) rounded to an integer, in the lowest bits.
  constexpr float shifter = 12582912.0f;
  const float shifted = x * 1.44269504f + shifter;
  const float n = shifted - shifter;
  // r = x - n log(2), with log(2) split in two parts; the product of n and the first is exact.
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
  // The largest x with a finite result. Larger x give infinity, and NaN gives NaN.
  const float bounded = x <= 88.7228317f ? scaled : x * Kokkos::bit_cast<float>(0x7f800000u);
  return x < -87.33f ? 0.0f : bounded;
}

/// Returns what exp2_approximate does on a host.
KOKKOS_INLINE_FUNCTION float exp2_polynomial(float x) {
  // Adding 1.5 * 2^23 + 127 leaves n + 127 in the lowest bits, where n is x rounded to an integer: the bits of 2^n's
  // exponent.
  constexpr float shifter = 12583039.0f;
  const float shifted = x + shifter;
  const float r = x - (shifted - shifter);
  float p = 1.5353362e-4f;
  p = p * r + 1.3398875e-3f;
  p = p * r + 9.61843692e-3f;
  p = p * r + 5.55033237e-2f;
  p = p * r + 0.240226477f;
  p = p * r + 0.693147182f;
  p = p * r + 1.0f;
  const float power = Kokkos::bit_cast<float>(Kokkos::bit_cast<std::uint32_t>(shifted) << 23);
  return x < -126.0f ? 0.0f : p * power;
}

/// Returns 2^x within 1.25 units in the last place for x <= 0 (1 with fused multiply-add, 2 on GPUs, which have
/// an instruction for it); 0 below -126 (where results would be subnormal), NaN for NaN.
KOKKOS_INLINE_FUNCTION float exp2_approximate(float x) {
  KOKKOS_IF_ON_DEVICE((return gpu::exp2(x);))
  KOKKOS_IF_ON_HOST((return exp2_polynomial(x);))
}

/// Returns x Phi(x) with the exact normal distribution Phi (Hendrycks, Gimpel 2016); absolute error below
/// 2e-7 max(1, |x|). Computed as max(x, 0) - |x| Phi(-|x|) with log2 Phi(-u) = -1 + u q(u) for u >= 0, where q is a
/// polynomial fitted on [0, 6] that keeps decreasing beyond, so that Phi(-u) tends to 0.
KOKKOS_INLINE_FUNCTION float gelu(float x) {
  const float u = Kokkos::fabs(x);
  float q = -2.33494848e-6f;
  q = q * u + 3.37378115e-5f;
  q = q * u - 1.61293807e-4f;
  q = q * u - 1.91703613e-4f;
  q = q * u + 7.12686544e-3f;
  q = q * u - 5.25336117e-2f;
  q = q * u - 0.459198296f;
  q = q * u - 1.151106f;
  const float tail = exp2_approximate(q * u - 1.0f);
  return (x < 0.0f ? 0.0f : x) - u * tail;
}

/// Returns Phi(x) + x phi(x), the derivative of `gelu`; absolute error below 3e-7. With u = |x| and
/// d(u) = Phi(-u) - u phi(u), it is d(u) for x < 0 and 1 - d(u) otherwise. d(u) = exp(-u^2 / 2) s(u), with a polynomial
/// s fitted on [0, 6].
KOKKOS_INLINE_FUNCTION float gelu_derivative(float x) {
  const float magnitude = Kokkos::fabs(x);
  const float u = magnitude > 14.0f ? 14.0f : magnitude;  // beyond this, exp is 0; NaN stays NaN
  float s = 1.63168977e-6f;
  s = s * u - 3.52077805e-5f;
  s = s * u + 3.39738413e-4f;
  s = s * u - 1.97462738e-3f;
  s = s * u + 7.93938991e-3f;
  s = s * u - 2.43139286e-2f;
  s = s * u + 6.11548834e-2f;
  s = s * u - 0.132513791f;
  s = s * u + 0.249916792f;
  s = s * u - 0.797878802f;
  s = s * u + 0.49999994f;
  const float d = exp2_approximate(u * (-0.721347520f * u)) * s;
  return x < 0.0f ? d : 1.0f - d;
}

}  // namespace mylos
