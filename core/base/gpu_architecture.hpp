#pragma once

#include "core/base/precision.hpp"

#include <compare>
#include <string>

/// Describes a GPU to kernels, libraries and plans: its architecture tells what it can do.
namespace mylos {

enum class Vendor { none, nvidia, amd };

/// The architecture of a GPU; `none` on a host, or if it is not known.
struct GpuArchitecture {
  Vendor vendor = Vendor::none;
  int number = 0;  ///< NVIDIA's compute capability: 90 is 9.0; AMD's number after "gfx", in base 16: 0x90a

  /// Returns whether it is NVIDIA's, of compute capability `capability` or later.
  constexpr bool is_nvidia(int capability = 0) const { return vendor == Vendor::nvidia && number >= capability; }
  constexpr bool is_amd() const { return vendor == Vendor::amd; }
  constexpr bool is_gpu() const { return vendor != Vendor::none; }
  /// Returns whether its matrix units multiply elements of this type and sum in float.
  bool multiplies(Precision precision) const;

  auto operator<=>(const GpuArchitecture&) const = default;
};

constexpr GpuArchitecture nvidia_gpu(int capability) { return {Vendor::nvidia, capability}; }
constexpr GpuArchitecture amd_gpu(int number) { return {Vendor::amd, number}; }

/// Returns "8.0", "gfx90a" or "none".
std::string short_name(const GpuArchitecture& architecture);
/// Returns "compute capability 8.0", "gfx90a" or "none".
std::string to_string(const GpuArchitecture& architecture);

}  // namespace mylos
