#include "nn/vocabulary_loss.hpp"

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

ParameterTable head_table() {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("before", {5}, {}, {});
  builder.tensor("words", {vocabulary, hidden}, {Initializer::Kind::normal, 0.5f});
  builder.unit("head").borrow("embeddings");
  builder.tensor("norm", {hidden}, {Initializer::Kind::ones}, {.decay = false});
  return builder.build();
}

/// A packed batch with some ignored rows, and the double-precision reference.
template <class T>
struct HeadSetting {
  HeadSetting(const std::string& provider, std::size_t chunk)
      : table(head_table()),
        engine(table, precision_of<T>, 1 << 20, provider),
        head(find_vocabulary_head(table, "words")),
        rows(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})),
        x(random_values<T>(rows * hidden, 1)),
        weight(engine.values(head.weight)) {
    head.chunk = chunk;
    for (std::size_t row = 0; row < rows; ++row) {
      labels.push_back(row % 5 == 3 ? -1 : static_cast<std::int32_t>(row * 7 % vocabulary));
    }
    const std::vector<std::uint32_t> ids{0, 1, 2, 3};
    batch.reset(lengths, ids);
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
  VocabularyWorkspace<T> workspace(ParameterStore::Purpose purpose = ParameterStore::Purpose::training) {
    engine.arena.rewind(0);
    return take_vocabulary_workspace<T>(engine.arena, head, rows, purpose);
  }

  ParameterTable table;
  Engine engine;
  VocabularyHead head;
  std::vector<std::size_t> lengths{1, 12, 3, 7};
  std::size_t rows;
  Values x, weight;
  std::vector<std::int32_t> labels;
  Batch batch;
};

MYLOS_TEST_OF_TYPES(VocabularyLoss, LossesAndGradientsMatchTheTwinForAnyChunk, float, bfloat16) {
  constexpr double scale = 0.25;
  for (const std::string& provider : exact_gemm_providers()) {
    for (const std::size_t chunk : {1u, 7u, 23u, 1000u}) {
      SCOPED_TRACE(fmt::format("{}, chunks of {}", provider, chunk));
      HeadSetting<T> s(provider, chunk);
      const Vector<float> losses("test::losses", s.lengths.size());
      const Matrix<T> dx("test::dx", s.rows, hidden);
      Kokkos::deep_copy(s.engine.store.gradient(s.head.weight), 0.5f);
      vocabulary_loss<T>(s.engine.pass(), s.head, s.batch, device_matrix<T>(s.x, s.rows, hidden),
                         device_integers(s.labels), static_cast<float>(scale), s.workspace(), losses, dx);
      expect_near(host_values(losses), s.losses(), 2e-6, "losses");
      Values dx_twin = numeric_gradient(s.x, [&] { return scale * s.total(); });
      expect_near(host_values(dx), dx_twin, 1e-6 + 8.0 * rounding<T>, "dx");
      Values dw_twin = numeric_gradient(s.weight, [&] { return scale * s.total(); });
      for (double& value : dw_twin) value += 0.5;
      expect_near(s.engine.gradient(s.head.weight), dw_twin, 1e-6 + 2.0 * rounding<T>, "dW");
    }
  }
}

MYLOS_TEST_OF_TYPES(VocabularyLoss, AStepsFirstPassWritesTheGradientAndLaterOnesAddAndMayWorkInPlace, float, bfloat16) {
  for (const std::size_t chunk : {5u, 1000u}) {
    HeadSetting<T> s(gemm_providers().back(), chunk);
    const Vector<float> losses("test::losses", s.lengths.size());
    Values once;
    for (const double passes : {1.0, 1.0, 2.0}) {  // two steps, and another pass of the second step
      if (passes == 1.0) s.engine.mode->begin_step(s.engine.space);
      const Matrix<T> x = device_matrix<T>(s.x, s.rows, hidden), dx("test::dx", s.rows, hidden);
      vocabulary_loss<T>(s.engine.pass(), s.head, s.batch, x, device_integers(s.labels), 1.0f, s.workspace(), losses,
                         passes == 1.0 ? dx : x);
      const Values gradient = s.engine.gradient(s.head.weight);
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

MYLOS_TEST_OF_TYPES(VocabularyLoss, PredictionSeesEveryRowOnceAndGivesTheSameLosses, float, bfloat16) {
  HeadSetting<T> s(gemm_providers().front(), 5);
  const auto workspace = s.workspace(ParameterStore::Purpose::inference);
  EXPECT_EQ(workspace.dlogits.size(), 0u);
  Values logits;
  for_each_logits_chunk<T>(s.engine.pass(), s.head, device_matrix<T>(s.x, s.rows, hidden), workspace,
                           [&](std::size_t first, const ConstMatrix<float>& chunk) {
                             EXPECT_EQ(first * vocabulary, logits.size());
                             const Values values = host_values(chunk);
                             logits.insert(logits.end(), values.begin(), values.end());
                             chunk_losses<T>(s.engine.pass(), device_integers(s.labels), first, chunk, workspace);
                           });
  const Vector<float> losses("test::losses", s.lengths.size());
  sum_sample_losses(s.engine.space, s.batch.sample_starts(), workspace.row_losses, losses);
  expect_near(host_values(losses), s.losses(), 2e-6, "losses");
  Values expected;
  for (std::size_t row = 0; row < s.rows; ++row) {
    for (std::size_t word = 0; word < vocabulary; ++word) expected.push_back(s.logit(row, word));
  }
  expect_near(logits, expected, 2e-6, "logits");
}

TEST(VocabularyHead, HoldsFewRowsOfAlargeVocabulary) {
  ParameterTable::Builder builder;
  builder.unit("head").tensor("large", {300000, 2}, {}).tensor("middle", {32000, 2}, {}).tensor("small", {100, 2}, {});
  builder.tensor("vector", {7}, {});
  const ParameterTable table = builder.build();
  EXPECT_EQ(find_vocabulary_head(table, "large").chunk, 128u);
  EXPECT_EQ(find_vocabulary_head(table, "middle").chunk, 1024u) << "1048 rows fit in 128 MiB";
  EXPECT_EQ(find_vocabulary_head(table, "small").chunk, 335488u);
  EXPECT_THAT(error_of([&] { find_vocabulary_head(table, "vector"); }),
              HasSubstr("vocabulary head: vector has 1 dimensions, not the 2 of a matrix (V, H)"));

  Arena measured;
  const VocabularyHead head = find_vocabulary_head(table, "large");
  take_vocabulary_workspace<float>(measured, head, 4096, ParameterStore::Purpose::training);
  EXPECT_LT(measured.peak(), 3u * 128 * 300000 * sizeof(float));
}

TEST(VocabularyHead, RefusesLabelsOfAnotherBatch) {
  HeadSetting<float> s(gemm_providers().front(), 7);
  const Vector<float> losses("test::losses", s.lengths.size());
  const Matrix<float> dx("test::dx", s.rows, hidden);
  s.labels.pop_back();
  EXPECT_THAT(error_of([&] {
                vocabulary_loss<float>(s.engine.pass(), s.head, s.batch, device_matrix<float>(s.x, s.rows, hidden),
                                       device_integers(s.labels), 1.0f, s.workspace(), losses, dx);
              }),
              HasSubstr("vocabulary loss: 22 labels and 23 rows for a batch of 23"));
}

}  // namespace
}  // namespace mylos::nn
