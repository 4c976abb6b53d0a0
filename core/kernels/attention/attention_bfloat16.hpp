#pragma once

#include "core/device.hpp"

#include <string_view>
#include <vector>

/// Arm's instruction is used in registers of 128 bits. CPUs with wider ones multiply as many pairs per cycle in these.
#if (defined(__AVX512BF16__) || (defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && !(__ARM_FEATURE_SVE_BITS > 128))) && \
    !defined(MYLOS_DEVICE_BUILD)
#define MYLOS_MULTIPLIES_PAIRS
#endif

/// The elements that attention multiplies on a host when its arrays are in bfloat16. It may convert them first.
namespace mylos::attention {

/// Whether this build can multiply pairs of bfloat16.
#if defined(MYLOS_MULTIPLIES_PAIRS)
inline constexpr bool multiplies_pairs = !kernels_in_teams;
#else
inline constexpr bool multiplies_pairs = false;
#endif

enum class Bfloat16Operands {
  floats,  ///< converted to float
  pairs,   ///< pairs of bfloat16 in vector registers (AVX512-BF16, Arm's BFDOT)
  tiles,   ///< pairs of bfloat16 in tile registers (AMX)
};

/// Returns "floats", "pairs" or "tiles".
std::string_view to_string(Bfloat16Operands operands);

/// Returns the kinds of operands that this build supports on this CPU, the fastest first. With tile registers, pairs
/// are faster than floats, including the conversions. Without them, AMD's and Arm's CPUs multiply at least as many
/// pairs as floats per cycle, Intel's half as many.
std::vector<Bfloat16Operands> supported_bfloat16_operands();

/// Returns the kind in use: the fastest, unless a ScopedBfloat16Operands exists.
Bfloat16Operands bfloat16_operands();

/// Makes kernels use `operands`, which must be supported, while it exists. For tests; kernels must not run when it is
/// created or destroyed.
class ScopedBfloat16Operands {
 public:
  explicit ScopedBfloat16Operands(Bfloat16Operands operands);
  ScopedBfloat16Operands(const ScopedBfloat16Operands&) = delete;
  ScopedBfloat16Operands& operator=(const ScopedBfloat16Operands&) = delete;
  ~ScopedBfloat16Operands();

 private:
  Bfloat16Operands before_;
};

}  // namespace mylos::attention
