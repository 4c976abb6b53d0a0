#include "nn/layers/convolution.hpp"

#include "tests/support/engine.hpp"
#include "tests/support/product_recorder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace mylos::nn {
namespace {

using namespace tests;

constexpr ConvolutionShape strided{
    .height = 5, .width = 4, .in = 3, .out = 6, .kernel_height = 3, .kernel_width = 3, .stride = 2, .padding = 1};
constexpr std::size_t image_count = 2;

ParameterTable make_convolution_table() {
  ParameterTable::Builder builder;
  builder.unit("stem");
  add_convolution_tensors(builder, "first", {.in = 7, .out = 2});
  builder.unit("block");
  add_convolution_tensors(builder, "second", strided);
  return builder.build();
}

/// Arrays of order 1, and the results of the layer's functions.
template <class T>
struct ConvolutionSetting {
  ConvolutionSetting()
      : table(make_convolution_table()),
        engine(table, precision_of<T>, 1 << 20, default_gemm_provider()),
        layer(find_convolution(table, "second", strided)),
        x(device_matrix<T>(random_values<T>(image_count * strided.pixels() * strided.in, 1),
                           image_count * strided.pixels(), strided.in)),
        dy(device_matrix<T>(random_values<T>(image_count * strided.out_pixels() * strided.out, 2),
                            image_count * strided.out_pixels(), strided.out)) {}

  ParameterTable table;
  Engine engine;
  ConvolutionLayer layer;
  Matrix<T> x, dy;
};

TEST(ConvolutionLayer, ItsWeightIsNamedAndDrawnForRectifiers) {
  const ParameterTable table = make_convolution_table();
  const ParameterTensor& row = table.tensor(find_convolution(table, "second", strided).weight);
  EXPECT_EQ(row.name, "second.weight");
  EXPECT_EQ(row.shape, (std::vector<std::size_t>{6, 3, 3, 3}));
  EXPECT_EQ(row.initializer.kind, Initializer::Kind::normal);
  EXPECT_FLOAT_EQ(row.initializer.scale, std::sqrt(2.0f / 54.0f));
  EXPECT_TRUE(row.group.decay);
}

MYLOS_TEST_OF_TYPES(ConvolutionLayers, PassesAreThoseOfTheWeight, float, bfloat16) {
  ConvolutionSetting<T> s;
  const Gemm gemm(default_gemm_provider());
  const ConstMatrix<T> weight = s.engine.store.template matrix<T>(s.layer.weight);
  const Matrix<T> y("test::y", s.dy.extent(0), strided.out), expected_y("test::y", s.dy.extent(0), strided.out);
  convolution_forward<T>(s.engine.pass(), s.layer, s.x, y);
  convolve<T>(ExecutionSpace(), gemm, strided, s.x, weight, expected_y);
  EXPECT_TRUE(same_bits(y, expected_y));
  const Matrix<T> dx("test::dx", s.x.extent(0), strided.in), expected_dx("test::dx", s.x.extent(0), strided.in);
  convolution_input_gradient<T>(s.engine.pass(), s.layer, s.dy, dx);
  convolve_input_gradient<T>(ExecutionSpace(), gemm, strided, s.dy, weight, expected_dx);
  EXPECT_TRUE(same_bits(dx, expected_dx));
}

MYLOS_TEST_OF_TYPES(ConvolutionLayers, EveryStepsWeightGradientCountsFromZero, float, bfloat16) {
  ConvolutionSetting<T> s;
  const Matrix<float> once("test::dweight", strided.out, strided.terms());
  convolve_weight_gradient<T>(ExecutionSpace(), Gemm(default_gemm_provider()), strided, s.x, s.dy, 0.0f, once);
  Values twice = host_values(once);
  for (double& value : twice) value *= 2.0;
  for (int step = 0; step < 3; ++step) {
    s.engine.strategy->begin_step(s.engine.space);
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      convolution_weight_gradient<T>(s.engine.pass(), s.layer, s.x, s.dy);
    }
    s.engine.strategy->finish_gradients();
    expect_near(s.engine.gradient(s.layer.weight), twice, 1e-6, fmt::format("dW of step {}", step));
    expect_near(s.engine.gradient(s.table.find("first.weight")), Values(14, 0.0), 0.0, "another convolution");
  }
}

TEST(ConvolutionLayer, ProductsAreThoseThatItsFunctionsCompute) {
  ConvolutionSetting<bfloat16> s;
  std::vector<GemmLabel> computed;
  {
    const ProductRecorder recorder;
    convolution_forward<bfloat16>(s.engine.pass(), s.layer, s.x, Matrix<bfloat16>("test::y", s.dy.extent(0), 6));
    convolution_weight_gradient<bfloat16>(s.engine.pass(), s.layer, s.x, s.dy);
    convolution_input_gradient<bfloat16>(s.engine.pass(), s.layer, s.dy, Matrix<bfloat16>("test::dx", 40, 3));
    computed = recorder.products();
  }
  const ConvolutionProducts listed{.name = "second", .shape = strided, .precision = Precision::bfloat16, .count = 4};
  const auto products = convolution_products(listed, image_count, ParameterStore::Purpose::training);
  ASSERT_EQ(products.size(), 3u);
  ASSERT_EQ(computed.size(), 3u);
  const char* names[] = {"second/forward", "second/weight-gradient", "second/input-gradient"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(products[i].name, names[i]);
    EXPECT_EQ(products[i].count, 4u);
    EXPECT_EQ(products[i].convolution, computed[i].convolution);
    EXPECT_EQ(products[i].flops(), 2.0 * image_count * 3 * 2 * 6 * 3 * 3 * 3);
    EXPECT_EQ(std::tie(products[i].m, products[i].n, products[i].k, products[i].input, products[i].output),
              std::tie(computed[i].m, computed[i].n, computed[i].k, computed[i].input, computed[i].output));
  }
  EXPECT_EQ(convolution_products(listed, image_count, ParameterStore::Purpose::inference).size(), 1u);
  ConvolutionProducts first = listed;
  first.needs_input_gradient = false;
  EXPECT_EQ(convolution_products(first, image_count, ParameterStore::Purpose::training).size(), 2u);
}

}  // namespace
}  // namespace mylos::nn
