#include "core/kernels/products/gemm_label.hpp"

#include "core/kernels/products/convolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

/// Records the names of the regions entered during its lifetime.
class RegionRecorder {
 public:
  RegionRecorder() {
    names().clear();
    Kokkos::Tools::Experimental::set_push_region_callback([](const char* name) { names().emplace_back(name); });
    Kokkos::Tools::Experimental::set_pop_region_callback([] { names().emplace_back("end"); });
  }
  ~RegionRecorder() {
    Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
    Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
  }

  static std::vector<std::string>& names() {
    static std::vector<std::string> all;
    return all;
  }
};

/// Returns the names of our regions that `run` enters. Every region ends.
template <class Run>
std::vector<std::string> our_regions(const Run& run) {
  {
    const RegionRecorder recorder;
    run();
  }
  EXPECT_EQ(RegionRecorder::names().size() % 2, 0u);
  std::vector<std::string> ours;
  for (const std::string& name : RegionRecorder::names()) {
    if (name.starts_with("mylos::")) ours.push_back(name);
  }
  return ours;
}

void multiply(const Gemm& gemm) {
  const Matrix<bfloat16> x("test::x", 5, 3), w("test::w", 4, 3);
  const Matrix<float> dw("test::dw", 4, 3), y("test::y", 5, 4);
  const ExecutionSpace space;
  gemm.operator()<bfloat16, float>(space, Transpose::no, x, Transpose::yes, w, 0.0f, y,
                                   {EpilogueKind::bias, Vector<float>("test::bias", 4), {}});
  const Matrix<bfloat16> dy("test::dy", 5, 4);
  gemm.operator()<bfloat16, float>(space, Transpose::yes, dy, Transpose::no, x, 1.0f, dw);
}

TEST(GemmLabel, ARegionAroundAProductSaysWhatItIs) {
  for (const std::string& provider : gemm_providers()) {
    const Gemm gemm(provider);
    EXPECT_THAT(our_regions([&] { multiply(gemm); }),
                ::testing::ElementsAre("mylos::gemm NT 5 4 3 bfloat16 float bias = " + provider,
                                       "mylos::gemm TN 4 3 5 bfloat16 float none += " + provider));
    RegionRecorder::names().clear();
    multiply(gemm);
    EXPECT_TRUE(RegionRecorder::names().empty());
  }
}

TEST(GemmLabel, ARegionAroundAConvolutionSaysItsShape) {
  const ConvolutionShape shape{
      .height = 4, .width = 5, .in = 3, .out = 2, .kernel_height = 3, .kernel_width = 1, .stride = 2, .padding = 1};
  const Matrix<bfloat16> x("test::x", 2 * 20, 3), weight("test::weight", 2, 9), y("test::y", 2 * 8, 2);
  const Matrix<float> dweight("test::dweight", 2, 9);
  for (const std::string& provider : gemm_providers()) {
    const Gemm gemm(provider);
    const std::vector<std::string> products = our_regions([&] {
      convolve<bfloat16>(ExecutionSpace(), gemm, shape, x, weight, y);
      convolve_weight_gradient<bfloat16>(ExecutionSpace(), gemm, shape, x, y, 1.0f, dweight);
      convolve_input_gradient<bfloat16>(ExecutionSpace(), gemm, shape, y, weight, x);
    });
    const std::string sizes = " 2 4 5 3 2 3 1 2 1 bfloat16 ";
    EXPECT_THAT(products,
                ::testing::ElementsAre("mylos::convolution forward" + sizes + "bfloat16 = " + provider,
                                       "mylos::convolution weight_gradient" + sizes + "float += " + provider,
                                       "mylos::convolution input_gradient" + sizes + "bfloat16 = " + provider));
    for (const std::string& name : products) {
      const auto label = parse_gemm_label(name);
      ASSERT_TRUE(label) << name;
      EXPECT_EQ(to_string(*label), name);
      EXPECT_EQ(product_work(*label).flops, 2.0 * 2 * 8 * 2 * 9);
    }
    // Images, weights and results once each; the float gradient is also read.
    EXPECT_EQ(product_work(*parse_gemm_label(products[0])).bytes, 2.0 * (120 + 18 + 32));
    EXPECT_EQ(product_work(*parse_gemm_label(products[1])).bytes, 2.0 * (120 + 32) + 8.0 * 18);
  }
}

TEST(GemmLabel, IsReadBack) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    for (const EpilogueKind epilogue : {EpilogueKind::none, EpilogueKind::bias, EpilogueKind::bias_gelu}) {
      const GemmLabel label{.transpose_a = Transpose::yes,
                            .m = 5'000'000'000,
                            .n = 1,
                            .k = 30,
                            .input = precision,
                            .output = precision,
                            .epilogue = epilogue,
                            .accumulates = epilogue == EpilogueKind::none,
                            .provider = "kokkos-kernels"};
      EXPECT_EQ(parse_gemm_label(to_string(label)), label);
    }
  }
}

TEST(GemmLabel, OtherRegionsHaveNone) {
  const std::string whole = "mylos::gemm NT 5 4 3 float float none = onednn";
  ASSERT_TRUE(parse_gemm_label(whole));
  for (const char* name :
       {"", "mylos::gemm", "KokkosBlas::gemm[TPL_BLAS,double]", "mylos::gemm N 5 4 3 float float none = onednn",
        "mylos::gemm NX 5 4 3 float float none = onednn", "mylos::gemm NT five 4 3 float float none = onednn",
        "mylos::gemm NT 5 4 3 double float none = onednn", "mylos::gemm NT 5 4 3 float float relu = onednn",
        "mylos::convolution backward 2 4 5 3 2 3 1 2 1 float float = onednn",
        "mylos::convolution forward 2 4 5 3 2 3 1 2 float float = onednn",
        "mylos::convolution forward 2 4 5 3 2 3 1 0 1 float float = onednn",
        "mylos::convolution forward 2 4 5 3 2 3 1 2 1 float float none = onednn",
        "mylos::gemm NT 5 4 3 float float none -= onednn", "mylos::gemm NT 5 4 3 float float none ="}) {
    EXPECT_FALSE(parse_gemm_label(name)) << name;
  }
}

}  // namespace
}  // namespace mylos
