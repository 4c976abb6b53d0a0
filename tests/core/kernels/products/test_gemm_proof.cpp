#include "core/kernels/products/gemm_proof.hpp"

#include "tests/core/kernels/provider_name.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mylos {
namespace {

/// Products of a linear layer and of a convolution, in odd sizes.
std::vector<GemmProduct> layer_products(Precision type) {
  const Transpose no = Transpose::no, yes = Transpose::yes;
  std::vector<GemmProduct> products = {
      {no, yes, 130, 33, 65, type, type, false, EpilogueKind::bias, 1, "layer/forward"},
      {no, yes, 17, 72, 24, type, type, false, EpilogueKind::bias_gelu, 1, "layer/gelu"},
      {no, no, 130, 65, 33, type, type, false, EpilogueKind::none, 1, "layer/input gradient"},
      {yes, no, 72, 65, 130, type, Precision::float32, true, EpilogueKind::none, 1, "layer/weight gradient"},
      {yes, yes, 2, 1, 3, type, type, true, EpilogueKind::none, 1, "small"}};
  const ConvolutionShape shape{9, 7, 3, 5, 3, 3, 2, 1};
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::weight_gradient}) {
    products.push_back(convolution_product({shape, pass}, 2, type));
  }
  return products;
}

class GemmProof : public ::testing::TestWithParam<std::string> {};

// The faults that it finds are in test_hipblaslt.cpp, which has a library that can be made to err.
TEST_P(GemmProof, AgreesWithEachProvider) {
  const ExecutionSpace space;
  for (const Precision type : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    EXPECT_EQ(gemm_fault(space, GetParam(), layer_products(type)), "") << to_string(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Gemm, GemmProof, ::testing::ValuesIn(exact_gemm_providers()), tests::provider_name);

TEST(GemmFault, OfAProviderThatDoesNotStartIsItsError) {
  EXPECT_THAT(gemm_fault(ExecutionSpace(), "mkl", {}), ::testing::StartsWith("no GEMM provider \"mkl\""));
}

}  // namespace
}  // namespace mylos
