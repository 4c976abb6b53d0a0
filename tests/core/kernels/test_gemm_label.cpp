#include "core/kernels/gemm_label.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

/// Names of the regions that are entered while it lives.
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
    {
      const RegionRecorder recorder;
      multiply(gemm);
    }
    std::vector<std::string> products;
    for (const std::string& name : RegionRecorder::names()) {
      if (name.starts_with("mylos::")) products.push_back(name);
    }
    EXPECT_THAT(products, ::testing::ElementsAre("mylos::gemm NT 5 4 3 bfloat16 float bias = " + provider,
                                                 "mylos::gemm TN 4 3 5 bfloat16 float none += " + provider));
    EXPECT_EQ(RegionRecorder::names().size() % 2, 0u);  // each of them ends
    RegionRecorder::names().clear();
    multiply(gemm);
    EXPECT_TRUE(RegionRecorder::names().empty());
  }
}

TEST(GemmLabel, IsReadBack) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    for (const EpilogueKind epilogue :
         {EpilogueKind::none, EpilogueKind::bias, EpilogueKind::bias_gelu, EpilogueKind::gelu_gradient}) {
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
        "mylos::gemm NT 5 4 3 float float none -= onednn", "mylos::gemm NT 5 4 3 float float none ="}) {
    EXPECT_FALSE(parse_gemm_label(name)) << name;
  }
}

}  // namespace
}  // namespace mylos
