#include "core/kernels/norms/layer_norm.hpp"
#include "core/kernels/products/gemm.hpp"
#include "tests/core/kernels/cublaslt_stand_in/cublaslt_stand_in.hpp"
#include "tests/core/kernels/gelu_twin.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

/// Products by cuBLASLt whose epilogues fail, with a stand-in for the library. test_gemm.cpp, in the same program,
/// compares its results with naive ones.
namespace mylos {
namespace {

using namespace tests;
using stand_in::CublasLtState;
using ::testing::HasSubstr;

#if defined(MYLOS_HIPBLASLT)
constexpr const char *provider = "hipblaslt", *launch_error = "hipBLASLt: a product: execution failed";
#else
constexpr const char *provider = "cublaslt", *launch_error = "cuBLASLt: a product: an error of the stand-in";
#endif

constexpr std::size_t m = 33, n = 64, k = 72;

/// A way in which cuBLASLt may fail with an epilogue.
struct Fault {
  std::string name;
  std::function<void(CublasLtState&)> inject;
  std::size_t tried = 0;  ///< products that are launched with the epilogue all the same
};

std::vector<Fault> faults() {
  return {
      {"no algorithm is found", [](CublasLtState& state) { state.has_fused_algorithms = false; }},
      {"the choice is not supported", [](CublasLtState& state) { state.fused_choice = CUBLAS_STATUS_NOT_SUPPORTED; }},
      {"the choice is an error", [](CublasLtState& state) { state.fused_choice = CUBLAS_STATUS_INVALID_VALUE; }},
      {"the launch fails", [](CublasLtState& state) { state.fused_launch = CUBLAS_STATUS_EXECUTION_FAILED; }, 1}};
}

class CublasLt : public ::testing::Test {
 protected:
  void SetUp() override { state_ = {}; }
  void TearDown() override {
    EXPECT_EQ(state_.mistake, "");
    EXPECT_EQ(state_.objects, 0u);
  }

  CublasLtState& state_ = stand_in::cublaslt_state();
  ExecutionSpace space_;
};

/// A product with an epilogue: of a forward pass, and of a weight gradient. Results keep their addresses from call to
/// call, because the provider chooses algorithms by the operands' alignment.
struct Products {
  Values a = random_values(m * k, 1), b = random_values(n * k, 2), bias = random_values(n, 3);
  Matrix<float> left = device_matrix<float>(a, m, k), right = device_matrix<float>(b, n, k);
  Vector<float> added = device_vector<float>(bias);
  Matrix<float> pre{"test::pre", m, n}, c{"test::c", m, n}, gradient{"test::gradient", k, k};
  Vector<float> sums{"test::sums", k}, workspace{"test::workspace", column_sum_workspace(n, k)};

  /// Returns c (M, N) = a b^T + bias, and its GELU if `kind` is bias_gelu.
  Values forward(const ExecutionSpace& space, const Gemm& gemm, EpilogueKind kind) const {
    gemm.operator()<float, float>(space, Transpose::no, left, Transpose::yes, right, 0.0f, c,
                                  Epilogue<float>{kind, added, pre});
    return host_values(c);
  }
  Values expected(EpilogueKind kind) const {
    Values all(m * n);
    for (std::size_t i = 0; i < all.size(); ++i) {
      double sum = bias[i % n];
      for (std::size_t p = 0; p < k; ++p) sum += a[i / n * k + p] * b[i % n * k + p];
      all[i] = kind == EpilogueKind::bias_gelu ? gelu_twin(sum) : sum;
    }
    return all;
  }

  /// Returns the column sums of b, which the gradient of a weight from b and b sums too.
  Values column_sums(const ExecutionSpace& space, const Gemm& gemm) const {
    Kokkos::deep_copy(sums, 0.0f);  // the sums are added
    gemm.multiply_and_sum<float>(space, right, right, 0.0f, gradient, sums, workspace);
    return host_values(sums);
  }
  Values expected_sums() const {
    Values sums(k, 0.0);
    for (std::size_t i = 0; i < b.size(); ++i) sums[i % k] += b[i];
    return sums;
  }
};

TEST_F(CublasLt, EpiloguesAreFused) {
  const Products products;
  const Gemm gemm(provider);
  for (const EpilogueKind kind : {EpilogueKind::bias, EpilogueKind::bias_gelu}) {
    expect_near(products.forward(space_, gemm, kind), products.expected(kind), 1e-5, "forward");
  }
  expect_near(products.column_sums(space_, gemm), products.expected_sums(), 1e-5, "column sums");
  EXPECT_EQ(state_.fused, 3u);
  EXPECT_EQ(state_.plain, 0u);
}

/// Expects right results of products whose epilogues have this fault, and no second try.
void expect_results_without_epilogues(const Fault& fault, const Gemm& gemm, const CublasLtState& state) {
  const Products products;
  const ExecutionSpace space;
  for (std::size_t time = 1; time <= 2; ++time) {
    expect_near(products.forward(space, gemm, EpilogueKind::bias), products.expected(EpilogueKind::bias), 1e-5, "bias");
    expect_near(products.column_sums(space, gemm), products.expected_sums(), 1e-5, "column sums");
    EXPECT_EQ(state.plain, 2 * time);
    EXPECT_EQ(state.fused, 2 * fault.tried);
  }
  expect_near(products.forward(space, gemm, EpilogueKind::bias_gelu), products.expected(EpilogueKind::bias_gelu), 1e-5,
              "bias and GELU");
}

TEST_F(CublasLt, AnEpilogueThatFailsIsLeftToAKernelAndNotTriedAgain) {
  for (const Fault& fault : faults()) {
    SCOPED_TRACE(fault.name);
    state_ = {};
    {
      const Gemm gemm(provider);
      fault.inject(state_);
      expect_results_without_epilogues(fault, gemm, state_);
    }
    EXPECT_EQ(state_.mistake, "");
    EXPECT_EQ(state_.objects, 0u);
  }
}

TEST_F(CublasLt, AProductThatFailsWithoutAnEpilogueIsAnError) {
  const Products products;
  const Gemm gemm(provider);
  state_.fused_launch = state_.plain_launch = CUBLAS_STATUS_EXECUTION_FAILED;
  EXPECT_THAT(error_of([&] { products.forward(space_, gemm, EpilogueKind::bias); }), HasSubstr(launch_error));
}

TEST_F(CublasLt, AKernelSumsFewColumns) {
  const Values values = random_values(n * 2, 3);
  const Matrix<float> narrow = device_matrix<float>(values, n, 2), c("test::c", 2, 2);
  const Vector<float> sums("test::sums", 2), workspace("test::workspace", column_sum_workspace(n, 2));
  Gemm(provider).multiply_and_sum<float>(space_, narrow, narrow, 0.0f, c, sums, workspace);
  Values expected(2, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) expected[i % 2] += values[i];
  expect_near(host_values(sums), expected, 1e-5, "column sums");
  EXPECT_EQ(state_.fused, 0u);
  EXPECT_EQ(state_.plain, 1u);
}

TEST_F(CublasLt, ABiasThatIsNotAlignedIsAddedByAKernel) {
  Products products;
  const Vector<float> shifted("test::shifted", n + 1);
  products.added = slice(shifted, 1, n + 1);
  Kokkos::deep_copy(products.added, device_vector<float>(products.bias));
  expect_near(products.forward(space_, Gemm(provider), EpilogueKind::bias), products.expected(EpilogueKind::bias), 1e-5,
              "bias");
  EXPECT_EQ(state_.fused, 0u);
  EXPECT_EQ(state_.plain, 1u);
}

}  // namespace
}  // namespace mylos
