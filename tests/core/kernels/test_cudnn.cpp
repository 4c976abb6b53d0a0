#include "core/kernels/cuda/cudnn_library.hpp"
#include "core/kernels/gpu/device_stream.hpp"
#include "core/kernels/products/convolution.hpp"
#include "core/kernels/products/gemm_measure.hpp"
#include "core/kernels/products/gemm_provider.hpp"
#include "tests/core/kernels/cudnn_stand_in/cudnn_stand_in.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"
#include "train/engine/selection/gemm_selection.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

/// Tests the cuDNN convolution provider with the stand-in. test_convolution.cpp, in the same program, compares its
/// results with naive ones.
namespace mylos {
namespace {

using namespace tests;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t images = 3;
constexpr ConvolutionShape shape{9, 7, 8, 16, 3, 3, 2, 1};
constexpr int not_supported = 3000, bad_parameter = 2000, execution_failed = 5000, not_initialized = 1001;

bool is_library_refused() { return std::getenv("CUDNN_STAND_IN_VERSION") != nullptr; }

class Cudnn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_library_refused()) GTEST_SKIP() << "the library is refused in this process";
    void* const library = ::dlopen("libcudnn.so.9", RTLD_NOW);
    ASSERT_NE(library, nullptr) << ::dlerror();
    const auto get = reinterpret_cast<decltype(&cudnn_stand_in_state)>(::dlsym(library, "cudnn_stand_in_state"));
    ASSERT_NE(get, nullptr) << "another cuDNN than the stand-in was found";
    state_ = get();
    *state_ = {};
  }
  void TearDown() override {
    if (state_ == nullptr) return;
    EXPECT_EQ(state_->mistake, "");
    EXPECT_EQ(state_->descriptors, 0u);
    EXPECT_EQ(state_->handles, 0u);
  }

  std::size_t computed() const { return state_->forward + state_->backward_data + state_->backward_filter; }

  stand_in::CudnnState* state_ = nullptr;
};

/// Runs the three passes with `provider`, with operands that start `shift` elements after an aligned address.
template <class T>
struct Passes {
  explicit Passes(const std::string& provider, std::size_t shift = 0) : gemm(provider), shift_(shift) {
    convolve<T>(space, gemm, shape, x, weight, y);
    convolve_input_gradient<T>(space, gemm, shape, dy, weight, dx);
    convolve_weight_gradient<T>(space, gemm, shape, x, dy, 0.0f, dweight);
  }

  void expect_equal(const Passes& other) const {
    const double rounding = 8.0 * tests::rounding<T> + 1e-5;
    expect_near(host_values(y), host_values(other.y), rounding, "forward");
    expect_near(host_values(dx), host_values(other.dx), rounding, "input gradient");
    expect_near(host_values(dweight), host_values(other.dweight), 1e-4, "weight gradient");
  }

  Matrix<T> filled(std::size_t rows, std::size_t columns, std::uint64_t seed) {
    const Vector<T> memory("test::memory", rows * columns + shift_);
    const Matrix<T> matrix(memory.data() + shift_, rows, columns);
    Kokkos::deep_copy(matrix, device_matrix<T>(random_values<T>(rows * columns, seed), rows, columns));
    memory_.push_back(memory);
    return matrix;
  }

  const ExecutionSpace space;
  const Gemm gemm;
  const std::size_t shift_;
  std::vector<Vector<T>> memory_;
  const Matrix<T> x = filled(images * shape.pixels(), shape.in, 1), weight = filled(shape.out, shape.terms(), 2),
                  dy = filled(images * shape.out_pixels(), shape.out, 3),
                  y = filled(images * shape.out_pixels(), shape.out, 4),
                  dx = filled(images * shape.pixels(), shape.in, 5);
  const Matrix<float> dweight{"test::dweight", shape.out, shape.terms()};
};

template <class T>
void expect_right(std::size_t shift = 0) {
  Passes<T>("cudnn", shift).expect_equal(Passes<T>("kokkos-kernels"));
}

TEST_F(Cudnn, ComputesFloatOnTheStreamOfTheSpace) {
  expect_right<float>();
  EXPECT_EQ(state_->forward, 1u);
  EXPECT_EQ(state_->backward_data, 1u);
  EXPECT_EQ(state_->backward_filter, 1u);
  EXPECT_EQ(state_->stream, cuda::stream_of(ExecutionSpace()));
}

/// cuDNN would round them to 16 bits.
TEST_F(Cudnn, LeavesWeightGradientsOf16BitsToTheDefault) {
  expect_right<bfloat16>();
  expect_right<half>();
  EXPECT_EQ(state_->forward, 2u);
  EXPECT_EQ(state_->backward_data, 2u);
  EXPECT_EQ(state_->backward_filter, 0u);
}

TEST_F(Cudnn, WhatHasNoAlgorithmIsComputedByTheDefault) {
  const auto expect_default = [&](const char* what) {
    SCOPED_TRACE(what);
    expect_right<float>();
    expect_right<bfloat16>();
    EXPECT_EQ(computed(), 0u);
    *state_ = {};
  };
  state_->status_of_choice = not_supported;
  expect_default("not supported");
  state_->status_of_choice = bad_parameter;
  expect_default("bad parameter");
  state_->status_of_calls = not_supported + 3;
  expect_default("turned down when called");
  state_->only_undeterministic = true;
  expect_default("other bits each time");
  state_->only_other_algorithms = true;
  expect_default("algorithms that round more");
  state_->extra_workspace = std::size_t{300} << 20;
  expect_default("too much workspace");
}

TEST_F(Cudnn, FloatIsNeverRounded) {
  state_->only_rounding = true;
  expect_right<float>();
  EXPECT_EQ(computed(), 0u);
  expect_right<bfloat16>();
  EXPECT_EQ(computed(), 2u);
}

TEST_F(Cudnn, OperandsThatAreNotAlignedAreLeftToTheDefault) {
  expect_right<float>(1);
  EXPECT_EQ(computed(), 0u);
}

TEST_F(Cudnn, ErrorsAreOneLineThatNamesTheConvolution) {
  state_->status_of_calls = execution_failed;
  const std::string of_call = error_of([] { Passes<bfloat16>("cudnn"); });
  EXPECT_THAT(of_call, AllOf(HasSubstr("cuDNN: convolution of 3 images of 9 x 7 x 8 to 16 channels by kernels of 3 x 3 "
                                       "in bfloat16: CUDNN_STATUS_EXECUTION_FAILED (injected)"),
                             Not(HasSubstr("\n"))));
  *state_ = {};
  state_->status_of_choice = not_initialized;
  EXPECT_THAT(error_of([] { Passes<float>("cudnn"); }), HasSubstr("cuDNN: choosing an algorithm for the convolution"));
  *state_ = {};
}

TEST_F(Cudnn, CountsItsWorkspace) {
  const auto provider = make_gemm_provider("cudnn");
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  const std::vector<GemmProduct> products = {
      convolution_product({shape, ConvolutionPass::forward}, images, Precision::float32)};
  const std::size_t least = provider->workspace_bytes(products);
  EXPECT_GE(least, 32 * mebibyte);
  EXPECT_LT(least, 41 * mebibyte);
  state_->extra_workspace = 40 * mebibyte;
  const std::size_t more = make_gemm_provider("cudnn")->workspace_bytes(products);
  EXPECT_GE(more, 64 * mebibyte);
  EXPECT_LT(more, 81 * mebibyte);
  const GemmProduct plain{.m = 3, .n = 4, .k = 5};
  EXPECT_EQ(provider->workspace_bytes(std::span(&plain, 1)),
            make_gemm_provider("kokkos-kernels")->workspace_bytes(std::span(&plain, 1)));
}

/// An odd number of images needs workspace, and an even number needs none.
TEST_F(Cudnn, AllocatesNothingForFewerImagesOnceWarm) {
  constexpr std::size_t most = 4;
  const Matrix<float> x("test::x", most * shape.pixels(), shape.in), weight("test::weight", shape.out, shape.terms()),
      y("test::y", most * shape.out_pixels(), shape.out);
  const Gemm gemm("cudnn");
  const auto pass = [&](std::size_t count) {
    convolve<float>(ExecutionSpace(), gemm, shape, Matrix<float>(x.data(), count * shape.pixels(), shape.in), weight,
                    Matrix<float>(y.data(), count * shape.out_pixels(), shape.out));
  };
  pass(most);
  const KokkosRecorder recorder;
  for (const std::size_t count : {3u, 2u, 1u, 4u}) pass(count);
  EXPECT_TRUE(recorder.allocations().empty()) << recorder.allocations().front().label;
  EXPECT_EQ(state_->forward, 5u);
}

TEST_F(Cudnn, IsTimedForConvolutionsAlone) {
  EXPECT_THAT(timed_gemm_providers(true, false), ElementsAre("cudnn", "kokkos-kernels"));
  EXPECT_THAT(timed_gemm_providers(false, false), ElementsAre("kokkos-kernels"));
  EXPECT_EQ(default_gemm_provider(), "kokkos-kernels");
}

std::vector<GemmProduct> chosen_products() {
  return {convolution_product({shape, ConvolutionPass::forward}, images, Precision::float32),
          convolution_product({shape, ConvolutionPass::weight_gradient}, images, Precision::float32)};
}

/// Returns a selection by timings in which cuDNN's forward convolution takes half the time.
GemmChoice choice_with_cudnn() {
  const GemmMeasurement measurement{timed_gemm_providers(true), default_gemm_provider()};
  return choose_gemm(measurement, chosen_products(), [&](std::size_t provider, const GemmProduct& product) {
    const bool is_fast =
        measurement.providers[provider] == "cudnn" && product.convolution->pass == ConvolutionPass::forward;
    return is_fast ? 1e-4 : 2e-4;
  });
}

TEST_F(Cudnn, IsChosenByTimingRecordedAndUsedAgain) {
  const GemmChoice choice = choice_with_cudnn();
  EXPECT_EQ(provider_of(choice, key_of(chosen_products()[0])), "cudnn");
  EXPECT_EQ(provider_of(choice, key_of(chosen_products()[1])), "kokkos-kernels");
  const GemmChoice recorded = train::parse_gemm_choice(train::to_json(choice), "run.json");
  EXPECT_EQ(recorded, choice);
  // Another run uses the recorded choice without measuring.
  EXPECT_EQ(train::select_gemm(ExecutionSpace(), {.recorded = recorded}, chosen_products()), choice);
  const auto filled = [](std::size_t rows, std::size_t columns) {
    const Matrix<float> matrix("test::matrix", rows, columns);
    Kokkos::deep_copy(matrix, 1.0f);
    return matrix;
  };
  const auto x = filled(images * shape.pixels(), shape.in), weight = filled(shape.out, shape.terms()),
             y = filled(images * shape.out_pixels(), shape.out);
  const Gemm gemm(recorded);
  convolve<float>(ExecutionSpace(), gemm, shape, x, weight, y);
  convolve_weight_gradient<float>(ExecutionSpace(), gemm, shape, x, y, 0.0f, weight);
  EXPECT_EQ(state_->forward, 1u);
  EXPECT_EQ(computed(), 1u);
}

TEST_F(Cudnn, IsMeasuredWithTheOthers) {
  const GemmChoice choice = train::select_gemm(ExecutionSpace(), {}, chosen_products());
  EXPECT_EQ(choice.products.size(), 2u);
  EXPECT_GT(state_->forward, 0u);
  EXPECT_GT(state_->backward_filter, 0u);
}

TEST(CudnnLibrary, ThatIsNotThereIsOneLine) {
  EXPECT_THAT(error_of([] { cudnn::load("libno-such-cudnn.so.9"); }),
              AllOf(HasSubstr("cuDNN cannot be loaded (libno-such-cudnn.so.9"), HasSubstr("LD_LIBRARY_PATH"),
                    HasSubstr("`gemm` auto"), Not(HasSubstr("\n"))));
}

TEST(CudnnLibrary, WithoutAFunctionIsNotOne) {
  EXPECT_THAT(error_of([] { cudnn::load("libm.so.6"); }), HasSubstr("libm.so.6 has no cudnnGetVersion"));
}

/// Runs with CUDNN_STAND_IN_VERSION=8907.
TEST(CudnnLibrary, OfAnotherMajorVersionIsNoCandidate) {
  if (!is_library_refused()) GTEST_SKIP() << "needs CUDNN_STAND_IN_VERSION=8907";
  const std::string obstacle = gemm_provider_obstacle("cudnn");
  EXPECT_THAT(obstacle, AllOf(HasSubstr("libcudnn.so.9 is cuDNN 8.9.7, and this build is for cuDNN 9"),
                              HasSubstr("LD_LIBRARY_PATH"), Not(HasSubstr("\n"))));
  EXPECT_THAT(built_gemm_providers(), ElementsAre("cudnn", "kokkos-kernels"));
  EXPECT_THAT(gemm_providers(), ElementsAre("kokkos-kernels"));
  EXPECT_THAT(exact_gemm_providers(), ElementsAre("kokkos-kernels"));
  EXPECT_EQ(error_of([] { make_gemm_provider("cudnn"); }), obstacle);
  // A choice recorded on another machine.
  GemmChoice recorded{"kokkos-kernels", {{key_of(chosen_products()[0]), "cudnn"}}};
  EXPECT_EQ(error_of([&] { Gemm gemm(recorded); }), obstacle);
  EXPECT_FALSE(train::is_built(recorded));
  const GemmChoice nothing{"kokkos-kernels", {}};
  EXPECT_EQ(train::select_gemm(ExecutionSpace(), {}, chosen_products()), nothing);
}

}  // namespace
}  // namespace mylos
