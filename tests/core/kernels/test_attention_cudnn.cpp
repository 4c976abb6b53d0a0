#include "core/device.hpp"
#include "tests/core/kernels/attention_twin.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

/// Attention by cuDNN itself, on a device with the library; elsewhere skipped. test_cudnn_attention.cpp tests it with a
/// stand-in.
namespace mylos::attention {
namespace {

using tests::AttentionCase;
using tests::AttentionProblem;

std::string cudnn_obstacle(std::size_t head_size) {
  const std::string of_build = attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16);
  if (!of_build.empty()) return of_build;
  return attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16, head_size, architecture_in_use());
}

class AttentionByCudnn : public testing::TestWithParam<AttentionCase> {
 protected:
  void SetUp() override {
    const std::string why = cudnn_obstacle(GetParam().head_size);
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(AttentionByCudnn, EqualsNaiveTwinInBfloat16) {
  tests::compare_with_naive<bfloat16>(GetParam(), AttentionKernel::cudnn);
}
TEST_P(AttentionByCudnn, EqualsNaiveTwinInHalf) { tests::compare_with_naive<half>(GetParam(), AttentionKernel::cudnn); }

const std::vector<AttentionCase> cudnn_cases = {
    {"Plain", 2, 2, 32, false, 0.0f, {7, 40, 1, 129}},  {"BertHeads", 2, 2, 64, false, 0.0f, {65, 3, 150}},
    {"LargeHeads", 1, 1, 128, false, 0.0f, {70}},       {"Causal", 1, 1, 64, true, 0.0f, {1, 70, 32, 200}},
    {"Grouped", 4, 2, 64, false, 0.0f, {50, 17}},       {"GroupedCausal", 4, 1, 128, true, 0.0f, {50, 130, 67}},
    {"OddHeads", 3, 1, 40, true, 0.0f, {30, 64, 2, 5}}, {"Long", 1, 1, 64, true, 0.0f, {1000, 24}},
};

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionByCudnn, testing::ValuesIn(cudnn_cases),
                         [](const testing::TestParamInfo<AttentionCase>& info) { return info.param.name; });

TEST(AttentionByCudnnErrors, ABuildWithoutItSaysSo) {
  const std::string why = attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16);
  if (why.empty()) GTEST_SKIP() << "this build has attention by cuDNN";
  EXPECT_THAT(why, testing::HasSubstr("a build for GPUs with MYLOS_ENABLE_CUDNN"));
  AttentionProblem<half> problem({"", 1, 1, 32, false, 0.0f, {5}});
  problem.shape.kernel = AttentionKernel::cudnn;
  EXPECT_THROW(problem.forward(), std::invalid_argument);
  EXPECT_THROW(problem.backward(), std::invalid_argument);
}

TEST(AttentionByCudnnErrors, NamesAreThoseOfTheOption) {
  for (const AttentionKernel kernel : attention_kernels) {
    EXPECT_EQ(find_attention_kernel(to_string(kernel)), kernel);
  }
  EXPECT_EQ(find_attention_kernel("auto"), std::nullopt);
}

}  // namespace
}  // namespace mylos::attention
