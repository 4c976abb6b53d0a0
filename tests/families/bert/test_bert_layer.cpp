// Compares a BERT layer and the whole model, at odd sizes, with the double-precision reference, without and with
// dropout: values, and the gradient of every tensor along itself and in single elements, by central differences of the
// reference.

#include "families/bert/bert_layer.hpp"

#include "families/bert/bert_model.hpp"
#include "tests/families/bert/bert_twin.hpp"
#include "tests/nn/model_setting.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace mylos::families {
namespace {

using namespace tests;
using ::testing::HasSubstr;

BertShape small_shape(std::size_t layers) {
  return {.vocabulary = 37,
          .hidden = 60,
          .layers = layers,
          .heads = 3,
          .feed_forward = 100,
          .positions = 19,
          .token_types = 2,
          .hidden_dropout = 0.2f,
          .attention_dropout = 0.3f,
          .initializer_range = 0.1f};
}

/// Returns one sequence of one token, one of maximum length, several, and eighty.
std::vector<std::vector<std::size_t>> packings() {
  std::vector<std::size_t> eighty(80);
  for (std::size_t i = 0; i < eighty.size(); ++i) eighty[i] = 1 + i * 7 % 5;
  return {{1}, {19}, {1, 19, 2, 7}, eighty};
}

std::string describe(const std::vector<std::size_t>& lengths, bool dropout) {
  return fmt::format("{} sequences, the first of {}, dropout {}", lengths.size(), lengths.front(),
                     dropout ? "on" : "off");
}

/// A layer that follows another, so that its dropout sites are not the first ones.
template <class T>
struct LayerSetting {
  LayerSetting(const std::vector<std::size_t>& lengths, bool with_dropout, const std::string& provider)
      : shape(small_shape(2)),
        table(make_table(shape)),
        data(shape, lengths),
        engine(table, precision_of<T>, planned(shape, data.rows()), provider),
        layer(table, shape, 1),
        dropout(with_dropout),
        x(random_values<T>(data.rows() * shape.hidden, 1)),
        dy(random_values<T>(data.rows() * shape.hidden, 2)) {
    data.fill(0, lengths.size(), batch);
  }
  static ParameterTable make_table(const BertShape& shape) {
    ParameterTable::Builder builder;
    for (std::size_t index = 0; index < 2; ++index) BertLayer<T>::add_rows(builder, shape, index);
    return builder.build();
  }
  static std::size_t planned(const BertShape& shape, std::size_t rows) {
    Arena arena;
    BertLayer<T>::take_activations(arena, shape, rows);
    BertLayer<T>::take_workspace(arena, shape, rows);
    return arena.peak();
  }
  DropoutRates rates() const {
    return dropout ? DropoutRates{shape.hidden_dropout, shape.attention_dropout} : DropoutRates{};
  }
  /// Returns the output, and writes the input's gradient to `dinput`.
  Values run(Values& dinput) {
    const auto saved = BertLayer<T>::take_activations(engine.arena, shape, data.rows());
    const auto workspace = BertLayer<T>::take_workspace(engine.arena, shape, data.rows());
    const Matrix<T> input = device_matrix<T>(x, data.rows(), shape.hidden);
    layer.forward(engine.pass(), batch, rates(), input, saved, workspace.forward());
    // As in the model, the gradient of the input overwrites that of the output.
    const Matrix<T> gradient = device_matrix<T>(dy, data.rows(), shape.hidden);
    layer.backward(engine.pass(), batch, rates(), input, saved, gradient, workspace, gradient);
    dinput = host_values(gradient);
    return host_values(saved.output);
  }
  double twin_loss(const BertTwin& twin) const {
    const Values y = twin.layer(1, x);
    return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
  }

  BertShape shape;
  ParameterTable table;
  TwinBatch data;
  Engine engine;
  static constexpr std::size_t unit = 1;  ///< of the layer
  BertLayer<T> layer;
  Batch batch;
  bool dropout;
  Values x, dy;
};

TEST(BertLayer, ValuesAndGradientsMatchTheTwin) {
  for (const auto& lengths : packings()) {
    for (const bool dropout : {false, true}) {
      SCOPED_TRACE(describe(lengths, dropout));
      LayerSetting<float> s(lengths, dropout, gemm_providers().front());
      Values dinput;
      const Values output = s.run(dinput);
      BertTwin twin(s.shape, s.engine, s.data, dropout);
      expect_near(output, twin.layer(1, s.x), 1e-5, "output");
      const auto loss = [&] { return s.twin_loss(twin); };
      // A sum over all rows of the batch, each with a rounding error of a few times 1e-7.
      const double noise = 2e-6 * std::sqrt(static_cast<double>(s.data.rows()));
      expect_gradient(s.x, dinput, loss, noise, "input");
      for (std::size_t row = s.table.find("bert.encoder.layer.1.attention.self.query.weight");
           row < s.table.tensors().size(); ++row) {
        if (s.table.tensor(row).unit != s.unit) continue;
        expect_gradient(twin.parameter(row), s.engine.gradient(row), loss, noise, s.table.tensor(row).name);
      }
      for (std::size_t row = 0; row < s.table.tensors().size(); ++row) {
        if (s.table.tensor(row).unit == s.unit) continue;
        EXPECT_EQ(largest_of(s.engine.gradient(row)), 0.0) << s.table.tensor(row).name << " is another layer's";
      }
    }
  }
}

/// `tolerance` applies to the output and to the norms of gradients, and `angle` to 1 - their cosines.
template <class T>
void expect_near_float(double tolerance, double angle) {
  for (const std::string& provider : exact_gemm_providers()) {
    SCOPED_TRACE(provider);
    LayerSetting<T> s({1, 19, 2, 7}, true, provider);
    Values dinput;
    const Values output = s.run(dinput);
    BertTwin twin(s.shape, s.engine, s.data, true);
    expect_near(output, twin.layer(1, s.x), tolerance, "output");
    LayerSetting<float> exact({1, 19, 2, 7}, true, provider);
    exact.x = s.x, exact.dy = s.dy;
    Values exact_dinput;
    exact.run(exact_dinput);
    expect_same_gradient(dinput, exact_dinput, angle, tolerance, "input");
    for (std::size_t row = 0; row < s.table.tensors().size(); ++row) {
      const std::string& name = s.table.tensor(row).name;
      // Adding a constant to the keys changes nothing, so that gradient is rounding noise.
      if (s.table.tensor(row).unit != s.unit || name.ends_with("key.bias")) continue;
      expect_same_gradient(s.engine.gradient(row), exact.engine.gradient(row), 5.0 * angle, tolerance, name);
    }
  }
}

TEST(BertLayer, Bfloat16StaysNearFloat) { expect_near_float<bfloat16>(4e-2, 1e-3); }
/// Three more bits of precision: an eighth of the error, and its square for the angle.
TEST(BertLayer, HalfStaysNearFloat) { expect_near_float<half>(5e-3, 1.6e-5); }

BertShape without_dropout(BertShape shape) {
  shape.hidden_dropout = shape.attention_dropout = 0.0f;
  return shape;
}

/// The whole model, and sequences in one batch.
struct BertSetting : ModelSetting<nn::Model, TwinBatch> {
  BertSetting(const std::vector<std::size_t>& lengths, bool dropout, const std::string& provider,
              nn::Recompute recomputed = nn::Recompute::none, Precision precision = Precision::float32,
              std::size_t layers = 2)
      : ModelSetting(make_bert_question_answering(dropout ? small_shape(layers) : without_dropout(small_shape(layers)),
                                                  precision),
                     TwinBatch(small_shape(layers), lengths), provider, recomputed, precision) {}
};

TEST(BertModel, FrozenTensorsHaveNoGradients) {
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::layer}) {
    const auto make = [&] {
      return BertSetting({1, 19, 2, 7}, true, exact_gemm_providers().front(), recompute, Precision::float32, 3);
    };
    for (const std::vector<std::string>& patterns : {std::vector<std::string>{"embeddings"},
                                                     {"body"},
                                                     {"head"},
                                                     {"layers.0-1"},
                                                     {"layer.1", "*key.weight"},
                                                     {"*.bias"},
                                                     {"embeddings", "layers.0"},
                                                     {"embeddings", "layers.0-1", "*LayerNorm*"},
                                                     {"*word_embeddings*", "*dense.weight"}}) {
      expect_frozen(make(), make(), patterns);
    }
  }
}

TEST(BertModel, AdaptersHaveTheGradientsThatFollowFromMergedWeights) {
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer}) {
    for (const std::vector<std::string>& ends :
         {std::vector<std::string>{""}, {"query", "value"}, {"1.attention.self.key", "2.intermediate.dense"}}) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(recompute), fmt::join(ends, ",")));
      const auto make = [&] {
        return BertSetting({1, 19, 2, 7}, true, exact_gemm_providers().front(), recompute, Precision::float32, 3);
      };
      nn::Adapters adapters = adapters_of(*make().model, ends);
      expect_adapted(make, adapters);
      adapters.trained = {"qa_outputs", "bert.encoder.layer.2.output"};
      expect_adapted(make, adapters);
    }
  }
}

BertSetting adapted_bert(const std::string& provider, nn::Recompute recompute, Precision precision) {
  BertSetting s({1, 19, 2, 7}, true, provider, recompute, precision, 3);
  s.adapt(adapters_of(*s.model, {""}, 0.3f));
  return s;
}

TEST(BertModel, AdaptersDropTheSameElementsInAnyPackingAndWhenRecomputed) {
  expect_recomputation_changes_no_bit(adapted_bert);
  expect_same_in_micro_batches(
      [] { return adapted_bert(gemm_providers().front(), nn::Recompute::none, Precision::float32); }, {1, 3});
}

TEST(BertModel, LayersBelowTheFirstTrainedOneKeepNothing) {
  const std::vector<std::size_t> packing{1, 19, 2, 7};
  for (const nn::Recompute recompute : {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer}) {
    const auto bytes = [&](const std::vector<std::string>& patterns) {
      BertSetting s(packing, true, exact_gemm_providers().front(), recompute, Precision::float32, 4);
      s.freeze(patterns);
      return s.training_bytes();
    };
    Arena arena;
    const auto first = BertLayer<float>::take_activations(arena, small_shape(4), 29);
    const std::size_t shared = arena.peak();
    BertLayer<float>::take_activations(arena, small_shape(4), 29, recompute, &first);
    const std::size_t layer = arena.peak() - shared, frozen = bytes({"embeddings"});
    EXPECT_LT(frozen, bytes({"head"}));
    EXPECT_EQ(bytes({"embeddings", "layers.0"}), frozen - layer) << to_string(recompute);
    EXPECT_EQ(bytes({"embeddings", "layers.0-2"}), frozen - 3 * layer) << to_string(recompute);
    EXPECT_EQ(bytes({"layers.0-2"}), bytes({"head"})) << "gradients of the embeddings need them";
  }
}

TEST(BertModel, LossesAndEveryGradientMatchTheTwin) {
  const std::vector<std::size_t> packing{1, 19, 2, 7};
  for (const bool dropout : {false, true}) {
    for (const std::string& provider : exact_gemm_providers()) {
      SCOPED_TRACE(describe(packing, dropout) + " " + provider);
      BertSetting s(packing, dropout, provider);
      BertTwin twin(small_shape(2), *s.engine, s.data, dropout);
      expect_losses_and_gradients(s, twin, 2e-6);
    }
  }
}

TEST(BertModel, PredictionHasNoDropoutAndGivesLogitsAndLosses) {
  for (const auto& packing : packings()) {
    SCOPED_TRACE(describe(packing, false));
    BertSetting s(packing, true, gemm_providers().back());
    const BertTwin twin(small_shape(2), *s.engine, s.data, false);
    const Vector<float> losses("test::losses", packing.size());
    const Values logits = s.predict(packing.size(), losses);
    expect_near(logits, twin.logits(), 2e-5, "logits");
    expect_near(host_values(losses), twin.losses(), 2e-5, "losses");
    EXPECT_EQ(s.predict(packing.size()), logits) << "without losses";
  }
}

TEST(BertModel, MicroBatchesGiveTheSameLossesAndGradientsWithDropout) {
  expect_same_in_micro_batches([] { return BertSetting(packings().back(), true, gemm_providers().front()); },
                               {1, 3, 64});
}

constexpr std::array recomputations = {nn::Recompute::none, nn::Recompute::attention, nn::Recompute::layer};

TEST(BertModel, TellsTheScheduleEachUnitAndTakesWhatWasPlanned) {
  for (const nn::Recompute recompute : recomputations) {
    BertSetting s({3, 5}, true, gemm_providers().front(), recompute),
        longer({1, 19, 2, 7}, true, gemm_providers().front(), recompute);
    expect_schedule(s, 4);
    expect_planned_memory(longer);
  }
}

TEST(BertModel, RecomputationChangesNoBit) {
  expect_recomputation_changes_no_bit([](const std::string& provider, nn::Recompute recompute, Precision precision) {
    return BertSetting({1, 19, 2, 7}, true, provider, recompute, precision, 3);
  });
}

/// Returns the bytes per token for training according to docs/plan.md, without terms independent of tokens.
std::size_t documented_bytes(const BertShape& shape, std::size_t element, nn::Recompute recompute) {
  const std::size_t hidden = shape.hidden, feed_forward = shape.feed_forward, heads = shape.heads;
  const std::size_t everything = (7 * hidden + feed_forward) * element + (heads + 4) * 4;
  const std::size_t kept = recompute == nn::Recompute::none        ? everything
                           : recompute == nn::Recompute::attention ? everything - 3 * hidden * element
                                                                   : hidden * element;
  const std::size_t embeddings = 2 * hidden * element + 2 * 4, head = 2 * 4 + 2 * element;
  const std::size_t work = (4 * hidden + std::max(feed_forward, 3 * hidden)) * element + heads * 4;
  return embeddings + (everything - kept) + shape.layers * kept + head + work;
}

TEST(BertModel, TakesTheDocumentedBytesAToken) {
  BertShape shape = small_shape(5);
  shape.hidden = 192;
  shape.feed_forward = 768;
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    const auto model = make_bert_question_answering(shape, precision);
    for (const nn::Recompute recompute : recomputations) {
      // 64,000 more rows, so that arrays end at multiples of the arena's alignment, 256.
      const std::size_t rows = 64000, more = 64;
      Arena few, many;
      model->plan(few, {1, rows, 1}, ParameterStore::Purpose::training, recompute);
      model->plan(many, {1, rows + more * 1000, 1}, ParameterStore::Purpose::training, recompute);
      const std::size_t sums = column_sum_workspace(rows + more * 1000, 768) - column_sum_workspace(rows, 768);
      EXPECT_EQ(many.peak() - few.peak() - sums * sizeof(float),
                more * 1000 * documented_bytes(shape, bytes_of(precision), recompute))
          << to_string(precision) << " " << to_string(recompute);
    }
  }
}

TEST(BertModel, RefusesWhatDoesNotFit) {
  BertShape shape = small_shape(1);
  shape.heads = 7;
  EXPECT_THAT(error_of([&] { make_bert_question_answering(shape, Precision::float32); }),
              HasSubstr("BERT: hidden size 60 is not a multiple of 7 heads"));
}

}  // namespace
}  // namespace mylos::families
