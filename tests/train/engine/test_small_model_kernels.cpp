// Checks the small models' gradients, and with them their own kernels.

#include "tests/small_models/image_task.hpp"
#include "tests/small_models/text_task.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace mylos::small_models {
namespace {

using namespace tests;
using ::testing::HasSubstr;

double inner(const Values& a, const Values& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// A model with one global batch of its task, in a separate pass.
struct Whole {
  explicit Whole(const train::Task& trained)
      : task(trained),
        samples(task.global_batch(0)),
        engine(task.model().table(), Precision::float32, planned(), gemm_providers().front()),
        scale(static_cast<float>(1.0 / task.weight(samples))) {
    std::vector<std::uint32_t> ids(samples.size());
    std::iota(ids.begin(), ids.end(), 0u);
    task.assemble(0, samples, ids, batch);
  }
  std::size_t planned() const {
    BatchShape shape{samples.size(), 0, 0};
    for (const std::size_t sample : samples) {
      shape.rows += task.rows_of(sample);
      shape.longest = std::max(shape.longest, task.rows_of(sample));
    }
    Arena arena;
    task.model().plan(arena, shape, ParameterStore::Purpose::training, nn::Recompute::none);
    return arena.peak();
  }
  double loss() {
    const Vector<float> losses("test::losses", samples.size());
    task.model().train(engine.pass(), batch, scale, losses);
    const Values all = host_values(losses);
    return static_cast<double>(scale) * std::accumulate(all.begin(), all.end(), 0.0);
  }

  const train::Task& task;
  std::vector<std::size_t> samples;
  Engine engine;
  float scale;
  Batch batch;
};

/// Compares each tensor's gradient, along itself, with central differences of the loss, to 3 % because of float. Units
/// become ready in reverse order, and their gradients do not change afterwards.
void expect_whole_gradient(const train::Task& task) {
  Whole whole(task);
  const ParameterTable& table = task.model().table();
  const double loss = whole.loss();
  EXPECT_EQ(whole.engine.hooks.entries(), expected_training_calls(table.units().size()));
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    expect_near(host_values(whole.engine.store.unit_gradients(unit)), whole.engine.hooks.gradients_when_ready(unit),
                0.0, "gradients written after they were said to be ready");
  }
  EXPECT_EQ(whole.engine.arena.peak(), whole.planned());
  std::vector<Values> gradients;
  for (std::size_t row = 0; row < table.tensors().size(); ++row) gradients.push_back(whole.engine.gradient(row));
  for (std::size_t row = 0; row < table.tensors().size(); ++row) {
    const Values center = whole.engine.values(row), &gradient = gradients[row];
    const double squares = inner(gradient, gradient), step = 2e-5 * loss / squares;
    const auto moved = [&](double by) {
      Values values = center;
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += by * gradient[i];
      whole.engine.write(row, values);
      return whole.loss();
    };
    const double slope = (moved(step) - moved(-step)) / (2.0 * step);
    whole.engine.write(row, center);
    EXPECT_NEAR(slope, squares, 0.03 * squares) << table.tensor(row).name;
  }
}

TEST(ConvolutionClassifier, GradientsAreTheSlopesOfTheLoss) {
  const ImageTask task({.groups = 3, .images_per_group = 4, .groups_per_batch = 3});
  expect_whole_gradient(task);
}

TEST(CausalDecoder, GradientsAreTheSlopesOfTheLossWithChunkedTiedLogits) {
  const TextTask task({.chunk = 37, .sentences = 16, .batch = 16});
  expect_whole_gradient(task);
}

/// Returns the losses of two sentences that differ only in their last word, with labels for the first `rows` words.
Values losses_of_twin_sentences(std::int32_t rows) {
  const TextTask task({.sentences = 16, .batch = 16});
  Whole whole(task);
  const std::vector<std::size_t> lengths{5, 5};
  const std::vector<std::uint32_t> ids{0, 1};
  const std::vector<std::int32_t> tokens{0, 5, 6, 7, 8, 0, 5, 6, 7, 9};
  std::vector<std::int32_t> labels;
  for (const std::int32_t position : {0, 1, 2, 3, 4, 0, 1, 2, 3, 4})
    labels.push_back(position < rows ? 10 + position : -1);
  whole.batch.reset(lengths, ids);
  whole.batch.set_indices(words::tokens, tokens);
  whole.batch.group_positions();
  whole.batch.set(words::labels, labels);
  const Vector<float> losses("test::losses", 2);
  task.model().predict(whole.engine.pass(), whole.batch, losses);
  return host_values(losses);
}

TEST(CausalDecoder, EarlierWordsDoNotSeeLaterOnes) {
  const Values earlier = losses_of_twin_sentences(4), all = losses_of_twin_sentences(5);
  EXPECT_GT(earlier[0], 1.0);
  EXPECT_EQ(earlier[0], earlier[1]);
  EXPECT_NE(all[0], all[1]);
}

TEST(ConvolutionClassifier, RefusesWhatItCannotPoolOrCut) {
  ImageTaskConfig config{.groups = 3, .images_per_group = 4, .groups_per_batch = 3};
  config.shape.image = {6, 7};
  EXPECT_THAT(error_of([&] { ImageTask task(config); }),
              HasSubstr("classifier: images of 6 x 7 cannot be pooled by 2"));

  const ImageTask task({.groups = 3, .images_per_group = 4, .groups_per_batch = 3});
  Whole whole(task);
  const std::vector<std::size_t> lengths{100};
  const std::vector<std::uint32_t> ids{0};
  whole.batch.reset(lengths, ids);
  EXPECT_THAT(error_of([&] { whole.loss(); }),
              HasSubstr("classifier: 100 pixels are no whole number of 12 x 12 images"));
}

}  // namespace
}  // namespace mylos::small_models
