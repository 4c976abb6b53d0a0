#include "nn/linear_adapters.hpp"

#include "nn/layers/linear.hpp"
#include "tests/core/kernels/dropout_twin.hpp"
#include "tests/nn/profiled_pass.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace mylos::nn {
namespace {

using namespace tests;
using Purpose = ParameterStore::Purpose;

constexpr std::size_t adapted_rows = 18, adapted_in = 9;

/// Adapters of layers 8, 4 and 4 wide that are read as one, of a single one, or of all four.
const std::vector<Adapters> adapter_cases = {
    {.layers = {{"query", 3, 0.5f}, {"value", 2, 2.0f}}},
    {.layers = {{"key", 4, -1.5f}}},
    {.layers = {{"single", 1, 3.0f}}},
    {.layers = {{"query", 1, 1.0f}, {"key", 3, 0.25f}, {"value", 4, 2.0f}, {"single", 5, 2.0f}}},
};

ParameterTable adapted_layers(Adapters adapters, float dropout) {
  ParameterTable::Builder builder;
  builder.unit("layer").stack(true);
  const Initializer normal{Initializer::Kind::normal, 0.5f};
  add_linear_tensors(builder, "query", adapted_in, 8, normal);
  add_linear_tensors(builder, "key", adapted_in, 4, normal);
  add_linear_tensors(builder, "value", adapted_in, 4, normal);
  builder.stack(false);
  add_linear_tensors(builder, "single", adapted_in, 6, normal);
  ParameterTable table = builder.build();
  adapters.dropout = dropout;
  add_adapters(table, adapters);
  return table;
}

/// A layer, stacked or not, with its input and the gradient of its output.
struct LayerValues {
  std::string first;
  std::size_t stacked, out;
  Values x, dy;
};

template <class T>
std::vector<LayerValues> both_layers() {
  return {{"query", 3, 16, random_values<T>(adapted_rows * adapted_in, 1), random_values<T>(adapted_rows * 16, 2)},
          {"single", 1, 6, random_values<T>(adapted_rows * adapted_in, 3), random_values<T>(adapted_rows * 6, 4)}};
}

/// Adapted layers beside sums in double precision over the same values.
template <class T>
struct AdaptedSetting {
  AdaptedSetting(const Adapters& adapters, float probability, const std::string& provider = gemm_providers().front())
      : table(adapted_layers(adapters, probability)),
        engine(table, precision_of<T>, 1 << 20, provider),
        dropout(probability) {
    batch.reset(std::vector<std::size_t>{17, adapted_rows - 17}, packing.ids);
    for (std::size_t i = 0; i < table.tensors().size(); ++i) values.push_back(engine.values(i));
  }
  AdapterArrays arrays(Purpose purpose = Purpose::training) {
    AdapterArrays made(engine.arena, all_adapters(table), precision_of<T>, adapted_rows, purpose);
    made.set_batch(batch);
    return made;
  }
  Linear linear(const LayerValues& layer) const { return find_linear(table, layer.first, layer.stacked); }
  /// Returns y, with dropout of the adapters' input or without.
  Values twin(const LayerValues& layer, bool drops) const {
    const Linear found = linear(layer);
    const DropoutKey key{engine.seed, engine.step, found.adapters.site, drops ? dropout : 0.0f};
    Values dropped = packing.factors(key, adapted_in), y(adapted_rows * layer.out);
    for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] *= layer.x[i];
    for (std::size_t i = 0, column = 0; i < layer.stacked; column += table.tensor(found.weight + i++).shape[0]) {
      const ParameterTensor& weight = table.tensor(found.weight + i);
      const std::string module = weight.name.substr(0, weight.name.rfind('.'));
      const auto down = table.look_up(module + adapter_a);
      const std::size_t rank = down ? table.tensor(*down).shape[0] : 0;
      const double scale = down ? static_cast<double>(table.tensor(*down).adapter->scale) : 0.0;
      const Values none;
      const Values &w = values[found.weight + i], &b = values[found.bias + i], &a = down ? values[*down] : none,
                   &up = down ? values[table.find(module + adapter_b)] : none;
      for (std::size_t row = 0; row < adapted_rows; ++row) {
        for (std::size_t c = 0; c < weight.shape[0]; ++c) {
          double& sum = y[row * layer.out + column + c] = b[c];
          for (std::size_t k = 0; k < adapted_in; ++k) {
            sum += layer.x[row * adapted_in + k] * w[c * adapted_in + k];
            for (std::size_t r = 0; r < rank; ++r) {
              sum += scale * up[c * rank + r] * a[r * adapted_in + k] * dropped[row * adapted_in + k];
            }
          }
        }
      }
    }
    return y;
  }
  double twin_loss(const std::vector<LayerValues>& layers) const {
    double loss = 0.0;
    for (const LayerValues& layer : layers) {
      const Values y = twin(layer, true);
      loss = std::inner_product(y.begin(), y.end(), layer.dy.begin(), loss);
    }
    return loss;
  }

  ParameterTable table;
  Engine engine;
  float dropout;
  Packing packing{adapted_rows};
  Batch batch;
  std::vector<Values> values;  ///< of each tensor
};

/// Terms of a product that passes x A^T in T, beside which the sum over the rank is in float.
template <class T>
constexpr double adapter_tolerance = 24.0 * rounding<T>;

template <class T, class Check>
void for_each_case(const Check& check) {
  for (const std::string& provider : exact_gemm_providers()) {
    for (std::size_t i = 0; i < adapter_cases.size(); ++i) {
      for (const float dropout : {0.0f, 0.3f}) {
        SCOPED_TRACE(fmt::format("{}, case {}, dropout {}", provider, i, dropout));
        AdaptedSetting<T> setting(adapter_cases[i], dropout, provider);
        check(setting);
      }
    }
  }
}

template <class T>
Values forward(AdaptedSetting<T>& s, AdapterArrays& arrays, const LayerValues& layer) {
  Pass pass = s.engine.pass();
  pass.adapters = &arrays;
  const Matrix<T> y("test::y", adapted_rows, layer.out);
  linear_forward<T>(pass, s.linear(layer), device_matrix<T>(layer.x, adapted_rows, adapted_in), y);
  return host_values(y);
}

MYLOS_TEST_OF_ELEMENTS(LinearAdapters, AddTheirProductsAndDropOnlyInTraining) {
  for_each_case<T>([](AdaptedSetting<T>& s) {
    for (const LayerValues& layer : both_layers<T>()) {
      AdapterArrays training = s.arrays(), prediction = s.arrays(Purpose::inference);
      expect_near(forward(s, training, layer), s.twin(layer, true), adapter_tolerance<T>, layer.first);
      expect_near(forward(s, prediction, layer), s.twin(layer, false), adapter_tolerance<T>, "in prediction");
    }
  });
}

MYLOS_TEST_OF_ELEMENTS(LinearAdapters, ComeBeforeTheActivation) {
  AdaptedSetting<T> s(adapter_cases[2], 0.3f);
  const LayerValues layer = both_layers<T>()[1];
  AdapterArrays arrays = s.arrays();
  Pass pass = s.engine.pass();
  pass.adapters = &arrays;
  const Matrix<T> pre("test::pre", adapted_rows, layer.out), y("test::y", adapted_rows, layer.out);
  linear_gelu_forward<T>(pass, s.linear(layer), device_matrix<T>(layer.x, adapted_rows, adapted_in), pre, y);
  Values expected = s.twin(layer, true);
  expect_near(host_values(pre), expected, adapter_tolerance<T>, "pre");
  for (double& value : expected) value *= 0.5 * std::erfc(-value / std::sqrt(2.0));
  expect_near(host_values(y), expected, adapter_tolerance<T>, "y");
}

/// The orders in which a layer may call the two functions of its backward pass.
enum class BackwardOrder { weights_first, input_first };

/// Runs a micro-batch: both layers forwards, then backwards. Returns the gradients of their inputs, which are added to
/// `before` if that is a number.
template <class T>
std::vector<Values> run_micro_batch(AdaptedSetting<T>& s, const std::vector<LayerValues>& layers, BackwardOrder order,
                                    double before = std::numeric_limits<double>::quiet_NaN()) {
  const float beta = std::isnan(before) ? 0.0f : 1.0f;
  AdapterArrays arrays = s.arrays();
  Pass pass = s.engine.pass();
  pass.adapters = &arrays;
  for (const LayerValues& layer : layers) forward(s, arrays, layer);
  std::vector<Values> gradients;
  for (std::size_t i = layers.size(); i-- > 0;) {
    const LayerValues& layer = layers[i];
    const Linear linear = s.linear(layer);
    const auto x = device_matrix<T>(layer.x, adapted_rows, adapted_in),
               dx = device_matrix<T>(Values(adapted_rows * adapted_in, before), adapted_rows, adapted_in);
    const auto dy = device_matrix<T>(layer.dy, adapted_rows, layer.out);
    const Vector<float> workspace("test::workspace", column_sum_workspace(adapted_rows, layer.out));
    if (order == BackwardOrder::input_first) linear_input_gradient<T>(pass, linear, dy, beta, dx);
    linear_gradients<T>(pass, linear, x, dy, workspace);
    if (order == BackwardOrder::weights_first) linear_input_gradient<T>(pass, linear, dy, beta, dx);
    gradients.insert(gradients.begin(), host_values(dx));
  }
  s.engine.arena.rewind(0);
  return gradients;
}

MYLOS_TEST_OF_ELEMENTS(LinearAdapters, GradientsAreNumericDerivativesAndAddUp) {
  for_each_case<T>([](AdaptedSetting<T>& s) {
    std::vector<LayerValues> layers = both_layers<T>();
    const auto loss = [&] { return s.twin_loss(layers); };
    std::vector<Values> of_inputs, of_tensors;
    for (LayerValues& layer : layers) of_inputs.push_back(numeric_gradient(layer.x, loss));
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      of_tensors.push_back(s.table.tensor(i).group.trainable ? numeric_gradient(s.values[i], loss) : Values());
    }
    for (const BackwardOrder order : {BackwardOrder::weights_first, BackwardOrder::input_first}) {
      s.engine.strategy->begin_step(s.engine.space);
      for (double micro_batches = 1.0; micro_batches < 3.0; ++micro_batches) {
        const bool adds = micro_batches == 2.0;
        const std::vector<Values> dx =
            adds ? run_micro_batch(s, layers, order, 0.5) : run_micro_batch(s, layers, order);
        for (std::size_t i = 0; i < dx.size(); ++i) {
          Values expected = of_inputs[i];
          for (double& value : expected) value += adds ? 0.5 : 0.0;
          expect_near(dx[i], expected, adapter_tolerance<T>, "dx of " + layers[i].first);
        }
        for (std::size_t i = 0; i < of_tensors.size(); ++i) {
          if (of_tensors[i].empty()) continue;
          Values expected = of_tensors[i];
          for (double& value : expected) value *= micro_batches;
          expect_near(s.engine.gradient(i), expected, adapter_tolerance<T>, s.table.tensor(i).name);
        }
      }
    }
  });
}

/// Frozen weights get no product. Those of a stack of which one is trained whole are computed with it.
TEST(LinearAdapters, AreListedAndNothingElseIsAdded) {
  for (const bool whole : {false, true}) {
    for (Adapters adapters : adapter_cases) {
      if (whole) adapters.trained = {"query"};
      AdaptedSetting<float> s(adapters, 0.0f);
      ProductCounts computed, expected;
      {
        const ProductRecorder recorder;
        run_micro_batch(s, both_layers<float>(), BackwardOrder::weights_first);
        for (const GemmLabel& product : recorder.products()) count_product(computed, product, 1);
      }
      for (const LayerValues& layer : both_layers<float>()) {
        LinearProducts linear{.name = layer.first, .in = adapted_in, .out = layer.out};
        // What is added to y follows the bias.
        linear.forward = EpilogueKind::bias;
        for (const GemmProduct& product : linear_products(linear, adapted_rows, Purpose::training)) {
          const bool is_trained = whole && layer.first == "query";
          if (!product.name.ends_with("/weight-gradient")) count_product(expected, product, 1);
          if (!product.name.ends_with("/weight-gradient") || !is_trained) continue;
          GemmProduct with_bias = product;
          with_bias.epilogue = EpilogueKind::none;
          count_product(expected, with_bias, 1);
        }
      }
      for (const GemmProduct& product :
           adapter_products(all_adapters(s.table), adapted_rows, Precision::float32, Purpose::training)) {
        count_product(expected, product, product.count);
      }
      EXPECT_EQ(computed, expected) << "whole " << whole;
    }
  }
}

TEST(LinearAdapters, WholeLayersOfAStackAreTrainedBesideThem) {
  Adapters adapters = adapter_cases.front();
  adapters.trained = {"key"};
  AdaptedSetting<float> s(adapters, 0.3f);
  std::vector<LayerValues> layers = both_layers<float>();
  run_micro_batch(s, layers, BackwardOrder::input_first);
  const auto loss = [&] { return s.twin_loss(layers); };
  for (const char* name : {"key.weight", "key.bias", "query.lora_A.weight", "value.lora_B.weight"}) {
    const std::size_t tensor = s.table.find(name);
    expect_near(s.engine.gradient(tensor), numeric_gradient(s.values[tensor], loss), 2e-6, name);
  }
}

TEST(LinearAdapters, AreFoundByStacks) {
  const ParameterTable table = adapted_layers(adapter_cases[3], 0.3f);
  const std::vector<LinearAdapters> all = all_adapters(table);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].blocks.count, 3u);
  EXPECT_EQ(all[0].rank, 8u);
  EXPECT_EQ(all[0].out, 16u);
  EXPECT_EQ(all[1].down, table.find("single.lora_A.weight"));
  EXPECT_NE(all[0].site, all[1].site);
  EXPECT_EQ(find_linear(adapted_layers(adapter_cases[2], 0.0f), "query", 3).adapters.rank, 0u);
}

/// Arrays end at multiples of the arena's alignment for these numbers of rows.
TEST(LinearAdapters, KeepOneRowOfTheRankForEachLayer) {
  const auto bytes = [](float dropout, Purpose purpose, std::size_t count) {
    Arena arena;
    const AdapterArrays arrays(arena, all_adapters(adapted_layers(adapter_cases[3], dropout)), Precision::bfloat16,
                               count, purpose);
    return arena.peak();
  };
  const auto per_row = [&](float dropout, Purpose purpose) {
    return (bytes(dropout, purpose, 12800) - bytes(dropout, purpose, 6400)) / 6400;
  };
  EXPECT_EQ(per_row(0.0f, Purpose::training), 2 * (8 + 5 + 8)) << "both layers, and the wider one's gradient";
  EXPECT_EQ(per_row(0.1f, Purpose::training), 2 * (8 + 5 + 8 + adapted_in));
  EXPECT_EQ(per_row(0.1f, Purpose::inference), 2 * 8) << "shared";
}

}  // namespace
}  // namespace mylos::nn
