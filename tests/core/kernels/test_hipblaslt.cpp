#include "core/kernels/products/gemm.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "tests/core/kernels/cublaslt_stand_in/cublaslt_stand_in.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "train/engine/selection/gemm_selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

/// hipBLASLt, which is called through the names of cuBLASLt, with a stand-in for the library. test_gemm.cpp and
/// test_cublaslt.cpp, in the same program, compare its results with naive ones and let its epilogues fail.
namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(HipblasLt, IsAskedForItsVersion) {
  EXPECT_EQ(gemm_provider_obstacle("hipblaslt"), "");
  EXPECT_EQ(make_gemm_provider("hipblaslt")->version(), "1201");
}

TEST(HipblasLt, IsNotCalledBeforeVersion06) {
  stand_in::cublaslt_state().hip_version = 512;
  try {
    make_gemm_provider("hipblaslt")->version();
    FAIL() << "an older library was called";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "libhipblaslt.so.0 is hipBLASLt 0.5.12, and 0.6 of ROCm 6 is the oldest that is called; load ROCm's module, "
        "or its folder lib in LD_LIBRARY_PATH, or do without: `gemm kokkos-kernels`");
  }
  stand_in::cublaslt_state().hip_version = 1201;
}

TEST(HipblasLt, IsAskedForAnAlgorithmOncePerShape) {
  const Gemm gemm("hipblaslt");
  const Vector<float> a("test::a", 101 * 8), b("test::b", 8 * 8), c("test::c", 101 * 8);  // whose alignments stay
  const std::size_t before = stand_in::cublaslt_state().choices;
  for (const std::size_t rows : {100, 101, 100}) {  // the first two are of one bucket
    gemm.operator()<float, float>(ExecutionSpace(), Transpose::no, as_matrix(a, rows, 8), Transpose::no,
                                  as_matrix(b, 8, 8), 0.0f, as_matrix(c, rows, 8));
  }
  EXPECT_EQ(stand_in::cublaslt_state().choices - before, 2u);
}

/// A library that errs until the end of the test.
class UnprovenHipblasLt : public ::testing::Test {
 protected:
  void SetUp() override { state_ = {}; }
  void TearDown() override { state_ = {}; }

  /// Returns the provider of `product` in a run, and stores what the run says in `line`.
  std::string chosen_for(const GemmProduct& product, const std::string& asked = train::GemmConfig::automatic,
                         const std::string& provider = "hipblaslt") {
    ::testing::internal::CaptureStderr();
    std::string chosen;
    line_ = error_of([&] {
      const train::GemmConfig config{.provider = asked, .recorded = GemmChoice{provider, {}}, .is_timed = false};
      chosen = train::choose_gemm(*parallel::make_self_communicator(), ExecutionSpace(), config, [&] {
                 return std::vector{product};
               }).fallback;
    });
    const std::string printed = ::testing::internal::GetCapturedStderr();
    if (!chosen.empty()) line_ = printed;
    return chosen;
  }
  std::string fault_with(const GemmProduct& product) {
    EXPECT_EQ(chosen_for(product), "kokkos-kernels");
    return line_;
  }

  std::string line_;
  stand_in::CublasLtState& state_ = stand_in::cublaslt_state();
  const GemmProduct forward_{Transpose::no,
                             Transpose::yes,
                             40,
                             72,
                             65,
                             Precision::bfloat16,
                             Precision::bfloat16,
                             false,
                             EpilogueKind::bias,
                             1,
                             "layer/forward"},
      gradient_{Transpose::yes,
                Transpose::no,
                72,
                65,
                40,
                Precision::bfloat16,
                Precision::float32,
                true,
                EpilogueKind::none,
                1,
                "layer/weight gradient"};
};

TEST_F(UnprovenHipblasLt, IsUsedIfItsProductsAreRight) {
  for (const GemmProduct& product : {forward_, gradient_}) {
    EXPECT_EQ(chosen_for(product), "hipblaslt");
    EXPECT_EQ(line_, "");
  }
  EXPECT_GT(state_.fused, 1u) << "the sums of a gradient are proven, too";
}

TEST_F(UnprovenHipblasLt, IsLeftOutIfAProductIsWrong) {
  state_.error = 1.0f;
  EXPECT_THAT(
      fault_with(forward_),
      MatchesRegex("matrix products: hipblaslt is left out, and the slower kokkos-kernels computes them: elements "
                   "of layer/forward \\(A B\\^T, 40 x 72 with sums of 65 bfloat16 products\\) differ by "
                   "[0-9.]+ times what is allowed\n"));
  state_.error = std::nanf("");
  EXPECT_THAT(fault_with(gradient_),
              HasSubstr("(A^T B, 72 x 65 with sums of 40 bfloat16 products) differ by inf times what is allowed"));
}

TEST_F(UnprovenHipblasLt, IsLeftOutIfTheSumsOfAGradientAreWrong) {
  state_.sums_error = 0.01f;
  EXPECT_THAT(fault_with(gradient_), HasSubstr("layer/weight gradient"));
  EXPECT_EQ(chosen_for(forward_), "hipblaslt");
}

TEST_F(UnprovenHipblasLt, IsLeftOutIfItFailsOrIsTooOld) {
  state_.plain_launch = state_.fused_launch = CUBLAS_STATUS_EXECUTION_FAILED;
  EXPECT_THAT(fault_with(forward_), HasSubstr("computes them: hipBLASLt: a product: execution failed"));
  state_ = {};
  state_.hip_version = 512;
  EXPECT_THAT(fault_with(forward_), HasSubstr("computes them: libhipblaslt.so.0 is hipBLASLt 0.5.12"));
}

TEST_F(UnprovenHipblasLt, EndsARunThatNamesIt) {
  state_.error = 1.0f;
  EXPECT_EQ(chosen_for(forward_, "hipblaslt"), "");
  EXPECT_THAT(line_, MatchesRegex("`gemm hipblaslt`: elements of layer/forward .* differ by [0-9.]+ times what is "
                                  "allowed; use another version, or the slower `gemm kokkos-kernels`"));
}

TEST_F(UnprovenHipblasLt, OtherProvidersAreNotProven) {
  state_.error = 1.0f;
  const std::size_t before = state_.plain + state_.fused;
  EXPECT_EQ(chosen_for(forward_, train::GemmConfig::automatic, "kokkos-kernels"), "kokkos-kernels");
  EXPECT_EQ(state_.plain + state_.fused, before);
}

}  // namespace
}  // namespace mylos
