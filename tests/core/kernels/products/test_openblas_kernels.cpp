#include "core/kernels/products/openblas_kernels.hpp"

#include <gtest/gtest.h>

namespace mylos::tests {
namespace {

constexpr VectorInstructions avx512{.avx2 = true, .avx512 = true}, avx2{.avx2 = true}, neither{};

TEST(OpenBlasKernels, AreThoseOfTheInstructionsIfTheCpuIsNotRecognised) {
  EXPECT_EQ(better_openblas_kernels("Prescott", avx512), "SkylakeX");
  EXPECT_EQ(better_openblas_kernels("Prescott", avx2), "Haswell");
}

TEST(OpenBlasKernels, StayThoseThatOpenBlasChooses) {
  EXPECT_EQ(better_openblas_kernels("Prescott", neither), "") << "this may be a Prescott";
  for (const char* chosen : {"Haswell", "Zen", "SkylakeX", "Cooperlake", ""}) {
    EXPECT_EQ(better_openblas_kernels(chosen, avx512), "") << chosen;
  }
}

}  // namespace
}  // namespace mylos::tests
