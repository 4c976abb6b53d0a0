#include "core/kernels/products/gemm.hpp"

#include "core/base/process/signals.hpp"
#include "core/kernels/norms/layer_norm.hpp"
#include "tests/core/kernels/gelu_twin.hpp"
#include "tests/core/kernels/provider_name.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/gemm_provider.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

struct Problem {
  Transpose transpose_a, transpose_b;
  std::size_t m, n, k;

  std::size_t rows_a() const { return transpose_a == Transpose::no ? m : k; }
  std::size_t rows_b() const { return transpose_b == Transpose::no ? k : n; }
  std::string name() const {
    return fmt::format("{} x {} x {} {}{}", m, n, k, transpose_a == Transpose::no ? 'N' : 'T',
                       transpose_b == Transpose::no ? 'N' : 'T');
  }

  /// Computes op(A) op(B) naively.
  Values product(const Values& a, const Values& b) const {
    Values c(m * n, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t p = 0; p < k; ++p) {
        const double left = transpose_a == Transpose::no ? a[i * k + p] : a[p * m + i];
        for (std::size_t j = 0; j < n; ++j) {
          c[i * n + j] += left * (transpose_b == Transpose::no ? b[p * n + j] : b[j * k + p]);
        }
      }
    }
    return c;
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  const std::size_t shapes[][3] = {{1, 1, 1}, {3, 7, 5}, {1, 384, 60}, {60, 1, 7}, {129, 2, 384}, {200, 180, 60}};
  for (const auto& shape : shapes) {
    for (const Transpose a : {Transpose::no, Transpose::yes}) {
      for (const Transpose b : {Transpose::no, Transpose::yes}) all.push_back({a, b, shape[0], shape[1], shape[2]});
    }
  }
  return all;
}

/// The tolerance of a product: float sums over k, one rounding to Out, and the error of the epilogue.
template <class Out>
double tolerance(const Problem& problem) {
  return 4.0 * rounding<Out> + 2e-7 * static_cast<double>(problem.k);
}

template <class In, class Out>
void check_products(const std::string& provider) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  for (const Problem& problem : problems()) {
    const Values a = random_values<In>(problem.m * problem.k, 1), b = random_values<In>(problem.k * problem.n, 2);
    const Values before = random_values<Out>(problem.m * problem.n, 3);
    const auto left = device_matrix<In>(a, problem.rows_a(), a.size() / problem.rows_a());
    const auto right = device_matrix<In>(b, problem.rows_b(), b.size() / problem.rows_b());
    Values expected = problem.product(a, b);
    for (const float beta : {0.0f, 1.0f}) {
      const auto c = device_matrix<Out>(before, problem.m, problem.n);
      // beta 0 overwrites old contents, even NaN.
      if (beta == 0.0f) Kokkos::deep_copy(c, Out(std::numeric_limits<float>::quiet_NaN()));
      gemm.operator()<In, Out>(space, problem.transpose_a, left, problem.transpose_b, right, beta, c);
      if (beta == 1.0f) std::transform(expected.begin(), expected.end(), before.begin(), expected.begin(), std::plus());
      expect_near(host_values(c), expected, tolerance<Out>(problem),
                  fmt::format("{} {} beta {}", provider, problem.name(), beta));
    }
  }
}

class GemmProviders : public ::testing::TestWithParam<std::string> {};

TEST_P(GemmProviders, MultipliesFloat) { check_products<float, float>(GetParam()); }
TEST_P(GemmProviders, MultipliesBfloat16) { check_products<bfloat16, bfloat16>(GetParam()); }
TEST_P(GemmProviders, MultipliesHalf) { check_products<half, half>(GetParam()); }
TEST_P(GemmProviders, SumsBfloat16InFloat) { check_products<bfloat16, float>(GetParam()); }
TEST_P(GemmProviders, SumsHalfInFloat) { check_products<half, float>(GetParam()); }

template <class T>
void check_epilogues(const std::string& provider) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  const Problem problem{Transpose::no, Transpose::yes, 33, 60, 24};
  const std::size_t size = problem.m * problem.n;
  const Values a = random_values<T>(problem.m * problem.k, 1), b = random_values<T>(problem.k * problem.n, 2);
  const Values bias = random_values<T>(problem.n, 4);
  const auto left = device_matrix<T>(a, problem.m, problem.k), right = device_matrix<T>(b, problem.n, problem.k);
  const Values product = problem.product(a, b);
  Values biased(size), activated(size);
  for (std::size_t i = 0; i < size; ++i) {
    biased[i] = product[i] + bias[i % problem.n];
    activated[i] = gelu_twin(biased[i]);
  }
  const auto run = [&](EpilogueKind kind, const Matrix<T>& pre) {
    const Matrix<T> c("test::c", problem.m, problem.n);
    gemm.operator()<T, T>(space, Transpose::no, left, Transpose::yes, right, 0.0f, c,
                          Epilogue<T>{kind, device_vector<T>(bias), pre});
    return host_values(c);
  };
  const double bound = tolerance<T>(problem);
  expect_near(run(EpilogueKind::bias, {}), biased, bound, provider + " bias");
  const Matrix<T> pre("test::pre", problem.m, problem.n);
  expect_near(run(EpilogueKind::bias_gelu, pre), activated, 2.0 * bound, provider + " bias_gelu");
  expect_near(host_values(pre), biased, bound, provider + " pre of bias_gelu");
}

TEST_P(GemmProviders, EpiloguesInFloat) { check_epilogues<float>(GetParam()); }
TEST_P(GemmProviders, EpiloguesInBfloat16) { check_epilogues<bfloat16>(GetParam()); }
TEST_P(GemmProviders, EpiloguesInHalf) { check_epilogues<half>(GetParam()); }

template <class T>
void check_column_sums(const std::string& provider) {
  const ExecutionSpace space;
  const Gemm gemm(provider);
  // The second has rows that no provider reads in accesses of 16 bytes.
  for (const Problem& problem :
       {Problem{Transpose::yes, Transpose::no, 64, 48, 300}, Problem{Transpose::yes, Transpose::no, 5, 7, 33}}) {
    const Values a = random_values<T>(problem.m * problem.k, 1), b = random_values<T>(problem.k * problem.n, 2);
    const auto left = device_matrix<T>(a, problem.k, problem.m), right = device_matrix<T>(b, problem.k, problem.n);
    const Values before = random_values(problem.m, 3), product = problem.product(a, b);
    const Matrix<float> c("test::c", problem.m, problem.n);
    const auto sums = device_vector<float>(before);
    const Vector<float> workspace("test::workspace", column_sum_workspace(problem.k, problem.m));
    Kokkos::deep_copy(c, std::numeric_limits<float>::quiet_NaN());
    Values expected = product, expected_sums = before;
    for (const float beta : {0.0f, 1.0f}) {
      gemm.multiply_and_sum<T>(space, left, right, beta, c, sums, workspace);
      for (std::size_t i = 0; i < a.size(); ++i) expected_sums[i % problem.m] += a[i];
      if (beta == 1.0f)
        std::transform(expected.begin(), expected.end(), product.begin(), expected.begin(), std::plus());
      const std::string name = fmt::format("{} {} beta {}", provider, problem.name(), beta);
      expect_near(host_values(c), expected, 2.0 * tolerance<float>(problem), name);
      expect_near(host_values(sums), expected_sums, 1e-6 * std::sqrt(static_cast<double>(problem.k)), name + " sums");
    }
  }
}

TEST_P(GemmProviders, SumsColumnsWithAProductInFloat) { check_column_sums<float>(GetParam()); }
TEST_P(GemmProviders, SumsColumnsWithAProductInBfloat16) { check_column_sums<bfloat16>(GetParam()); }
TEST_P(GemmProviders, SumsColumnsWithAProductInHalf) { check_column_sums<half>(GetParam()); }

TEST_P(GemmProviders, GivesTheSameBitsTwice) {
  const ExecutionSpace space;
  const Gemm gemm(GetParam());
  const auto a = device_matrix<bfloat16>(random_values(500 * 96, 1), 500, 96);
  const auto b = device_matrix<bfloat16>(random_values(60 * 96, 2), 60, 96);
  const Matrix<float> once("test::once", 500, 60), twice("test::twice", 500, 60);
  for (const auto& c : {once, twice}) {
    gemm.operator()<bfloat16, float>(space, Transpose::no, a, Transpose::yes, b, 0.0f, c);
  }
  EXPECT_TRUE(same_bits(once, twice));
}

/// Sends this process a signal every 200 us while it lives.
class SignalRain {
 public:
  ~SignalRain() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ends_ = false;
  const bool is_ignored_ = std::signal(SIGUSR1, SIG_IGN) != SIG_ERR;  // the last one may come after the guard's end
  const SignalGuard guard_;
  std::thread thread_{[this] {
    while (!ends_) {
      ::kill(::getpid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }};
};

// oneDNN's float products for AVX2 keep the stack pointer in memory of the heap.
TEST_P(GemmProviders, KeepTheirBitsUnderSignals) {
  const ExecutionSpace space;
  const Gemm gemm(GetParam());
  const std::size_t m = 384, n = 768, k = 768;
  const auto a = device_matrix<float>(random_values(m * k, 1), m, k);
  const auto b = device_matrix<float>(random_values(k * n, 2), k, n),
             b_transposed = device_matrix<float>(random_values(k * n, 2), n, k);
  const Matrix<float> once("test::once", m, n), again("test::again", m, n);
  for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
    const auto multiply = [&](const Matrix<float>& c) {
      gemm.operator()<float, float>(space, Transpose::no, a, transpose, transpose == Transpose::no ? b : b_transposed,
                                    0.0f, c);
    };
    multiply(once);
    const SignalRain rain;
    for (int round = 0; round < 40; ++round) {
      multiply(again);
      ASSERT_TRUE(same_bits(once, again)) << "round " << round;
    }
  }
}

TEST_P(GemmProviders, AllocatesNothingAtSmallerSizesOnceWarm) {
  const ExecutionSpace space;
  const Gemm gemm(GetParam());
  const auto a = device_matrix<bfloat16>(random_values(300 * 60, 1), 300, 60);
  const auto b = device_matrix<bfloat16>(random_values(48 * 60, 2), 48, 60);
  const Matrix<bfloat16> c("test::c", 300, 48);
  const auto multiply = [&](std::size_t rows) {
    gemm.operator()<bfloat16, bfloat16>(space, Transpose::no, Matrix<bfloat16>(a.data(), rows, 60), Transpose::yes, b,
                                        0.0f, Matrix<bfloat16>(c.data(), rows, 48));
  };
  multiply(300);
  const KokkosRecorder recorder;
  for (const std::size_t rows : {299u, 1u, 300u, 77u}) multiply(rows);
  EXPECT_TRUE(recorder.allocations().empty()) << recorder.allocations().front().label;
}

INSTANTIATE_TEST_SUITE_P(Gemm, GemmProviders, ::testing::ValuesIn(exact_gemm_providers()), provider_name);

TEST(Gemm, PortableProviderComesFirst) { EXPECT_EQ(gemm_providers().front(), "kokkos-kernels"); }

TEST(Gemm, AnUnknownProviderIsNamedWithThoseThereAre) {
  const std::string error = "no GEMM provider \"mkl\" in this build; there are: kokkos-kernels";
  EXPECT_THAT(error_of([] { make_gemm_provider("mkl"); }), HasSubstr(error));
  EXPECT_THAT(error_of([] { Gemm(GemmChoice{gemm_providers().front(), {{GemmKey(), "mkl"}}}); }), HasSubstr(error));
}

/// Returns the CPU flags of this machine as listed by the kernel.
std::string cpu_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return line + " ";
  }
  return "";
}

TEST(Gemm, OneDnnConvertsBfloat16OnlyWhereTheCpuHasNoInstructionsForIt) {
  if (!tests::has_gemm_provider("onednn")) GTEST_SKIP() << "this build has no oneDNN";
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  const bool native = limit == nullptr && cpu_flags().find(" avx512_bf16 ") != std::string::npos;
  const ExecutionSpace space;
  const Gemm gemm("onednn");
  const Matrix<bfloat16> a("test::a", 64, 64), b("test::b", 64, 64), c("test::c", 64, 64);
  const KokkosRecorder recorder;
  gemm.operator()<bfloat16, bfloat16>(space, Transpose::no, a, Transpose::no, b, 0.0f, c);
  EXPECT_EQ(recorder.launched("mylos::activation::convert"), !native);
}

std::string error_with(std::size_t rows_b, float beta, EpilogueKind kind, std::size_t bias, std::size_t pre_rows) {
  const Matrix<float> a("test::a", 3, 4), b("test::b", rows_b, 5), c("test::c", 3, 5), pre("test::pre", pre_rows, 5);
  const Vector<float> values("test::bias", bias);
  return error_of([&] {
    Gemm("kokkos-kernels")
        .
        operator()<float, float>(ExecutionSpace(), Transpose::no, a, Transpose::no, b, beta, c,
                                 Epilogue<float>{kind, values, pre});
  });
}

TEST(Gemm, ErrorsShowTheShapes) {
  EXPECT_THAT(error_with(6, 0.0f, EpilogueKind::none, 0, 0),
              HasSubstr("product of 3 x 4 and 6 x 5 does not give 3 x 5"));
  EXPECT_THAT(error_with(4, 0.5f, EpilogueKind::none, 0, 0), HasSubstr("product with beta 0.5"));
  EXPECT_THAT(error_with(4, 1.0f, EpilogueKind::bias, 5, 0), HasSubstr("product with beta 1: it is 0, or 1 without"));
  EXPECT_THAT(error_with(4, 0.0f, EpilogueKind::bias, 4, 0),
              HasSubstr("product with 5 columns: the bias has 4 elements"));
  EXPECT_THAT(error_with(4, 0.0f, EpilogueKind::bias_gelu, 5, 2),
              HasSubstr("product of 3 x 5: the epilogue's pre is 2 x 5"));
  EXPECT_EQ(error_with(4, 0.0f, EpilogueKind::bias_gelu, 5, 3), "(nothing was thrown)");
  const Matrix<float> a("test::a", 4, 3), b("test::b", 4, 5), c("test::c", 3, 5);
  const auto with_sums = [&](float beta, std::size_t sums, std::size_t workspace) {
    return error_of([&] {
      Gemm("kokkos-kernels")
          .multiply_and_sum<float>(ExecutionSpace(), a, b, beta, c, Vector<float>("test::sums", sums),
                                   Vector<float>("test::workspace", workspace));
    });
  };
  EXPECT_THAT(with_sums(0.5f, 3, 9), HasSubstr("product with beta 0.5"));
  EXPECT_THAT(with_sums(0.0f, 5, 9),
              HasSubstr("product and sums of 3 columns: room for 5 sums, and 9 in the workspace"));
  EXPECT_THAT(with_sums(0.0f, 3, 2),
              HasSubstr("product and sums of 3 columns: room for 3 sums, and 2 in the workspace"));
  EXPECT_EQ(with_sums(1.0f, 3, 9), "(nothing was thrown)");
}

}  // namespace
}  // namespace mylos
