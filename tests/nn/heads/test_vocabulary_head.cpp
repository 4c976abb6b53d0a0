#include "nn/heads/vocabulary_head.hpp"

#include "tests/support/engine.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace mylos::nn {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr std::size_t vocabulary = 31, hidden = 9;

/// The embeddings' unit lends the head its weight.
template <class T>
ParameterTable head_table(const Head<T>& head) {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("before", {5}, {}, {});
  builder.tensor("words", {vocabulary, hidden}, {Initializer::Kind::normal, 0.5f});
  builder.unit("head");
  head.add_tensors(builder, hidden);
  builder.tensor("norm", {hidden}, {Initializer::Kind::ones}, {.decay = false});
  return builder.build();
}

VocabularyHeadSettings tied_head(std::size_t chunk) {
  return {.weight = "words", .vocabulary = vocabulary, .lender = "embeddings", .chunk = chunk};
}

/// A packed batch with some ignored rows, and the double-precision reference.
template <class T>
struct HeadSetting {
  HeadSetting(const std::string& provider, std::size_t chunk)
      : head(make_vocabulary_head<T>(tied_head(chunk))),
        table(head_table(*head)),
        engine(table, precision_of<T>, 1 << 20, provider),
        weight_row(table.find("words")),
        rows(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})),
        x(random_values<T>(rows * hidden, 1)),
        weight(engine.values(weight_row)) {
    head->find_tensors(table);
    for (std::size_t row = 0; row < rows; ++row) {
      labels.push_back(row % 5 == 3 ? -1 : static_cast<std::int32_t>(row * 7 % vocabulary));
    }
    const std::vector<std::uint32_t> ids{0, 1, 2, 3};
    batch.reset(lengths, ids);
    batch.set(names::labels, labels);
  }
  /// Trains on x, and returns the losses.
  Values train(const Matrix<T>& input, const Matrix<T>& dx, float scale) {
    engine.arena.rewind(0);
    const Vector<float> sums("test::losses", lengths.size());
    head->train(engine.pass(), batch, scale, {input, dx, {}}, sums);
    return host_values(sums);
  }
  double logit(std::size_t row, std::size_t word) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < hidden; ++i) sum += x[row * hidden + i] * weight[word * hidden + i];
    return sum;
  }
  double row_loss(std::size_t row) const {
    if (labels[row] < 0) return 0.0;
    double sum = 0.0;
    for (std::size_t word = 0; word < vocabulary; ++word) sum += std::exp(logit(row, word));
    return std::log(sum) - logit(row, static_cast<std::size_t>(labels[row]));
  }
  Values losses() const {
    Values sums;
    std::size_t row = 0;
    for (const std::size_t length : lengths) {
      sums.push_back(0.0);
      for (std::size_t i = 0; i < length; ++i) sums.back() += row_loss(row++);
    }
    return sums;
  }
  double total() const {
    const Values all = losses();
    return std::accumulate(all.begin(), all.end(), 0.0);
  }

  std::unique_ptr<Head<T>> head;
  ParameterTable table;
  Engine engine;
  std::size_t weight_row;
  std::vector<std::size_t> lengths{1, 12, 3, 7};
  std::size_t rows;
  Values x, weight;
  std::vector<std::int32_t> labels;
  Batch batch;
};

MYLOS_TEST_OF_TYPES(VocabularyHead, LossesAndGradientsMatchTheTwinForAnyChunk, float, bfloat16) {
  constexpr double scale = 0.25;
  for (const std::string& provider : exact_gemm_providers()) {
    for (const std::size_t chunk : {1u, 7u, 23u, 1000u}) {
      SCOPED_TRACE(fmt::format("{}, chunks of {}", provider, chunk));
      HeadSetting<T> s(provider, chunk);
      const Matrix<T> dx("test::dx", s.rows, hidden);
      Kokkos::deep_copy(s.engine.store.gradient(s.weight_row), 0.5f);
      expect_near(s.train(device_matrix<T>(s.x, s.rows, hidden), dx, static_cast<float>(scale)), s.losses(), 2e-6,
                  "losses");
      Values dx_twin = numeric_gradient(s.x, [&] { return scale * s.total(); });
      expect_near(host_values(dx), dx_twin, 1e-6 + 8.0 * rounding<T>, "dx");
      Values dw_twin = numeric_gradient(s.weight, [&] { return scale * s.total(); });
      for (double& value : dw_twin) value += 0.5;
      expect_near(s.engine.gradient(s.weight_row), dw_twin, 1e-6 + 2.0 * rounding<T>, "dW");
    }
  }
}

MYLOS_TEST_OF_TYPES(VocabularyHead, AStepsFirstPassWritesTheGradientAndLaterOnesAddAndMayWorkInPlace, float, bfloat16) {
  for (const std::size_t chunk : {5u, 1000u}) {
    HeadSetting<T> s(gemm_providers().back(), chunk);
    Values once;
    for (const double passes : {1.0, 1.0, 2.0}) {  // two steps, and another pass of the second step
      if (passes == 1.0) s.engine.strategy->begin_step(s.engine.space);
      const Matrix<T> x = device_matrix<T>(s.x, s.rows, hidden), dx("test::dx", s.rows, hidden);
      s.train(x, passes == 1.0 ? dx : x, 1.0f);
      const Values gradient = s.engine.gradient(s.weight_row);
      if (once.empty()) once = gradient;
      Values expected = once;
      for (double& value : expected) value *= passes;
      expect_near(gradient, expected, 1e-6, fmt::format("dW after {} passes, chunks of {}", passes, chunk));
      Values dx_twin = numeric_gradient(s.x, [&] { return s.total(); });
      expect_near(host_values(passes == 1.0 ? dx : x), dx_twin, 1e-6 + 8.0 * rounding<T>, "dx");
    }
    Values dw_twin = numeric_gradient(s.weight, [&] { return s.total(); });
    expect_near(once, dw_twin, 1e-6 + 4.0 * rounding<T>, "dW");
  }
}

MYLOS_TEST_OF_TYPES(VocabularyHead, PredictionGivesTheLikeliestWordOfEveryRowAndTheSameLosses, float, bfloat16) {
  HeadSetting<T> s(gemm_providers().front(), 5);
  const Vector<float> losses("test::losses", s.lengths.size());
  const HeadInput<T> input{device_matrix<T>(s.x, s.rows, hidden), {}, {}};
  const Values likeliest = host_values(s.head->predict(s.engine.pass(), s.batch, input, losses));
  expect_near(host_values(losses), s.losses(), 2e-6, "losses");
  ASSERT_EQ(likeliest.size(), s.rows);
  for (std::size_t row = 0; row < s.rows; ++row) {
    for (std::size_t word = 0; word < vocabulary; ++word) {
      EXPECT_LE(s.logit(row, word), s.logit(row, static_cast<std::size_t>(likeliest[row])) + 2e-6) << "row " << row;
    }
  }
}

/// The arena's bytes of a head of `rows_of_weight` rows in training.
std::size_t planned_head_bytes(std::size_t rows_of_weight, std::size_t rows) {
  Arena measured;
  const auto head = make_vocabulary_head<float>({.weight = "words", .vocabulary = rows_of_weight});
  head->plan(measured, {1, rows, rows}, {Matrix<float>(nullptr, rows, 2), {}, {}}, ParameterStore::Purpose::training);
  return measured.peak() - rows * sizeof(float);
}

TEST(VocabularyHead, HoldsFewRowsOfAlargeVocabulary) {
  EXPECT_EQ(planned_head_bytes(300000, 4096), 2u * 128 * 300000 * sizeof(float));
  EXPECT_EQ(planned_head_bytes(32000, 4096), 2u * 1024 * 32000 * sizeof(float)) << "1048 rows fit in 128 MiB";
  EXPECT_EQ(planned_head_bytes(100, 1 << 20), 2u * 335488 * 100 * sizeof(float));
}

TEST(VocabularyHead, ListsFullChunksAndTheRest) {
  const auto counts = [](std::size_t rows) {
    HeadSetting<float> s(gemm_providers().front(), 7);
    std::map<std::string, std::pair<std::size_t, std::size_t>> found;
    for (const GemmProduct& product : s.head->products({1, rows, rows}, ParameterStore::Purpose::inference)) {
      found[product.name] = {product.count, product.m};
    }
    return found;
  };
  using Counts = std::map<std::string, std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(counts(23), (Counts{{"head/forward", {3, 7}}, {"head-rest/forward", {1, 2}}}));
  EXPECT_EQ(counts(14), (Counts{{"head/forward", {2, 7}}}));
  EXPECT_EQ(counts(5), (Counts{{"head/forward", {1, 5}}}));
}

TEST(VocabularyHead, RefusesLabelsOfAnotherBatchAndTensorsThatDoNotFit) {
  HeadSetting<float> s(gemm_providers().front(), 7);
  const Matrix<float> dx("test::dx", s.rows, hidden);
  s.labels.pop_back();
  s.batch.set(names::labels, s.labels);
  EXPECT_THAT(error_of([&] { s.train(device_matrix<float>(s.x, s.rows, hidden), dx, 1.0f); }),
              HasSubstr("vocabulary head: 22 labels for a batch of 23 rows"));
  const auto head = make_vocabulary_head<float>({.weight = "before", .vocabulary = 5});
  EXPECT_THAT(error_of([&] { head->find_tensors(s.table); }),
              HasSubstr("vocabulary head: before is not a matrix of 5 rows"));
}

}  // namespace
}  // namespace mylos::nn
