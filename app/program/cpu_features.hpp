#pragma once

#include <cstddef>

/// Lists the instruction sets that this program was compiled for, and those of the CPU that it runs on. This code runs
/// before anything else, on any CPU. It must not use the C++ library or inline functions of other headers: the linker
/// keeps one copy of an inline function, and that copy may contain instructions that this CPU lacks.
namespace mylos::app {

/// Calls DO(name, macro, ...) for each feature that both GCC 12 and Clang 14 know and generate code for. The compiler
/// defines `macro` if it may use the feature. On x86-64 `name` is the feature's name for __builtin_cpu_supports; on Arm
/// the third argument is true if this CPU has it.
#if __ARM_FEATURE_SVE_BITS == 256
#define MYLOS_SVE_256 1
#elif __ARM_FEATURE_SVE_BITS == 512
#define MYLOS_SVE_512 1
#endif
// clang-format off
#if defined(__aarch64__) && defined(__linux__)
#define MYLOS_FOR_EACH_CPU_FEATURE(DO) \
  DO("atomics", __ARM_FEATURE_ATOMICS, has_bit(AT_HWCAP, HWCAP_ATOMICS)) \
  DO("crc32", __ARM_FEATURE_CRC32, has_bit(AT_HWCAP, HWCAP_CRC32)) \
  DO("asimddp", __ARM_FEATURE_DOTPROD, has_bit(AT_HWCAP, HWCAP_ASIMDDP)) \
  DO("asimdhp", __ARM_FEATURE_FP16_VECTOR_ARITHMETIC, has_bit(AT_HWCAP, HWCAP_ASIMDHP)) \
  DO("bf16", __ARM_FEATURE_BF16_VECTOR_ARITHMETIC, has_bit(AT_HWCAP2, HWCAP2_BF16)) \
  DO("i8mm", __ARM_FEATURE_MATMUL_INT8, has_bit(AT_HWCAP2, HWCAP2_I8MM)) \
  DO("sve", __ARM_FEATURE_SVE, has_bit(AT_HWCAP, HWCAP_SVE)) \
  DO("sve2", __ARM_FEATURE_SVE2, has_bit(AT_HWCAP2, HWCAP2_SVE2)) \
  DO("sve-of-256-bits", MYLOS_SVE_256, sve_bits() == 256) \
  DO("sve-of-512-bits", MYLOS_SVE_512, sve_bits() == 512)
#else
#define MYLOS_FOR_EACH_CPU_FEATURE(DO) \
  DO("sse3", __SSE3__) \
  DO("ssse3", __SSSE3__) \
  DO("sse4.1", __SSE4_1__) \
  DO("sse4.2", __SSE4_2__) \
  DO("popcnt", __POPCNT__) \
  DO("aes", __AES__) \
  DO("pclmul", __PCLMUL__) \
  DO("avx", __AVX__) \
  DO("avx2", __AVX2__) \
  DO("fma", __FMA__) \
  DO("bmi", __BMI__) \
  DO("bmi2", __BMI2__) \
  DO("gfni", __GFNI__) \
  DO("vpclmulqdq", __VPCLMULQDQ__) \
  DO("avx512f", __AVX512F__) \
  DO("avx512bw", __AVX512BW__) \
  DO("avx512cd", __AVX512CD__) \
  DO("avx512dq", __AVX512DQ__) \
  DO("avx512vl", __AVX512VL__) \
  DO("avx512ifma", __AVX512IFMA__) \
  DO("avx512vbmi", __AVX512VBMI__) \
  DO("avx512vbmi2", __AVX512VBMI2__) \
  DO("avx512vnni", __AVX512VNNI__) \
  DO("avx512bitalg", __AVX512BITALG__) \
  DO("avx512vpopcntdq", __AVX512VPOPCNTDQ__) \
  DO("avx512bf16", __AVX512BF16__)
#endif
// clang-format on

#define MYLOS_COUNT_CPU_FEATURE(name, macro, ...) +1
inline constexpr std::size_t cpu_feature_count = 0 MYLOS_FOR_EACH_CPU_FEATURE(MYLOS_COUNT_CPU_FEATURE);

/// The names of the features, in the order of MYLOS_FOR_EACH_CPU_FEATURE.
extern const char* const cpu_feature_names[cpu_feature_count];

/// For each feature, true if the compiler was allowed to use it.
extern const bool built_cpu_features[cpu_feature_count];

/// Sets an element of `present` to true if this CPU has the feature, and to false otherwise. Processors other than
/// x86-64 and Arm's are assumed to have every feature of the build.
void detect_cpu_features(bool (&present)[cpu_feature_count]);

/// Writes the names of the features in `built` that are not in `present` to `text`, separated by spaces and truncated
/// to `size` bytes including the final NUL. Returns the number of missing features.
std::size_t missing_cpu_features(const bool* built, const bool* present, char* text, std::size_t size);

}  // namespace mylos::app
