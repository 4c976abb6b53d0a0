// Compares the small models' own kernels with naive references and numeric Jacobians, and checks both models'
// gradients.

#include "core/kernels/layer_norm.hpp"
#include "tests/small_models/batch_norm.hpp"
#include "tests/small_models/decoder_kernels.hpp"
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

constexpr ImageSize image{4, 6};
constexpr std::size_t images = 3, channels = 5, pixels = images * 24;

double inner(const Values& a, const Values& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// Returns a channel of a pixel, or 0 outside of its image.
double at(const Values& x, std::size_t which, std::ptrdiff_t row, std::ptrdiff_t column, std::size_t channel) {
  if (row < 0 || column < 0 || row >= 4 || column >= 6) return 0.0;
  return x[((which * 4 + static_cast<std::size_t>(row)) * 6 + static_cast<std::size_t>(column)) * channels + channel];
}

TEST(ImageKernels, NeighboursAreGatheredAndTheirGradientIsTheTransposed) {
  const Values x = random_values(pixels * channels, 1), dcolumns = random_values(pixels * 9 * channels, 2);
  const Matrix<float> columns("test::columns", pixels, 9 * channels), dx("test::dx", pixels, channels);
  gather_neighbours({}, image, device_matrix<float>(x, pixels, channels), columns);
  Values expected;
  for (std::size_t row = 0; row < pixels; ++row) {
    const auto y = static_cast<std::ptrdiff_t>(row % 24 / 6), z = static_cast<std::ptrdiff_t>(row % 6);
    for (int tap = 0; tap < 9; ++tap) {
      for (std::size_t c = 0; c < channels; ++c)
        expected.push_back(at(x, row / 24, y + tap / 3 - 1, z + tap % 3 - 1, c));
    }
  }
  expect_near(host_values(columns), expected, 0.0, "columns");
  gather_neighbours_backward({}, image, device_matrix<float>(dcolumns, pixels, 9 * channels), dx);
  // A gather is linear: <A x, d> = <x, A^T d>, for each pixel separately.
  Values basis(pixels * channels, 0.0), transposed;
  for (std::size_t i = 0; i < basis.size(); ++i) {
    basis.assign(basis.size(), 0.0);
    basis[i] = 1.0;
    gather_neighbours({}, image, device_matrix<float>(basis, pixels, channels), columns);
    transposed.push_back(inner(host_values(columns), dcolumns));
  }
  expect_near(host_values(dx), transposed, 1e-6, "dx");
}

TEST(ImageKernels, PoolingIsTheMeanOfAWindowAndItsGradientTheTransposed) {
  for (const ImageSize& window : {ImageSize{2, 2}, ImageSize{1, 3}, image}) {
    const std::size_t pooled = pixels / window.pixels();
    const Values x = random_values(pixels * channels, 1), dy = random_values(pooled * channels, 2);
    const Matrix<float> y("test::y", pooled, channels), dx("test::dx", pixels, channels);
    average_pool({}, image, window, device_matrix<float>(x, pixels, channels), y);
    Values expected(pooled * channels, 0.0), gradient(pixels * channels);
    average_pool_backward({}, image, window, device_matrix<float>(dy, pooled, channels), dx);
    for (std::size_t row = 0; row < pixels; ++row) {
      const std::size_t line = row % 24 / 6 / window.height, column = row % 6 / window.width;
      const std::size_t to = (row / 24 * (4 / window.height) + line) * (6 / window.width) + column;
      for (std::size_t c = 0; c < channels; ++c) {
        expected[to * channels + c] += x[row * channels + c] / static_cast<double>(window.pixels());
        gradient[row * channels + c] = dy[to * channels + c] / static_cast<double>(window.pixels());
      }
    }
    expect_near(host_values(y), expected, 1e-6, "y");
    expect_near(host_values(dx), gradient, 1e-6, "dx");
  }
}

/// BatchNorm with ReLU in double, with three groups and a divisor of 2.
struct NormTwin {
  std::vector<std::size_t> starts{0, 14, 18, 40};
  std::size_t rows = 20;
  Values x = random_values(rows * channels, 1, 2.0), gamma = random_values(channels, 2),
         beta = random_values(channels, 3), dy = random_values(rows * channels, 4);

  /// Returns mean and variance of a channel over a group.
  std::pair<double, double> statistics(std::size_t group, std::size_t c) const {
    const std::size_t begin = starts[group] / 2, end = starts[group + 1] / 2;
    const double count = static_cast<double>(end - begin);
    double mean = 0.0, variance = 0.0;
    for (std::size_t row = begin; row < end; ++row) mean += x[row * channels + c] / count;
    for (std::size_t row = begin; row < end; ++row) variance += std::pow(x[row * channels + c] - mean, 2) / count;
    return {mean, variance};
  }
  Values output() const {
    Values y(x.size());
    for (std::size_t group = 0; group < 3; ++group) {
      for (std::size_t c = 0; c < channels; ++c) {
        const auto [mean, variance] = statistics(group, c);
        for (std::size_t row = starts[group] / 2; row < starts[group + 1] / 2; ++row) {
          const double normal = (x[row * channels + c] - mean) / std::sqrt(variance + 1e-5);
          y[row * channels + c] = std::max(0.0, gamma[c] * normal + beta[c]);
        }
      }
    }
    return y;
  }
};

TEST(BatchNorm, ForwardBackwardAndObservedStatisticsMatchTheTwin) {
  NormTwin twin;
  std::vector<std::uint32_t> groups_of_rows;
  for (std::uint32_t row = 0; row < 40; ++row) groups_of_rows.push_back(row < 14 ? 0 : row < 18 ? 1 : 2);
  const NormGroups groups{device_integers(twin.starts), device_integers(groups_of_rows), 2};
  const NormParameters parameters{device_vector<float>(twin.gamma), device_vector<float>(twin.beta)};
  const auto x = device_matrix<float>(twin.x, twin.rows, channels),
             dy = device_matrix<float>(twin.dy, twin.rows, channels);
  Arena arena("test::arena", 1 << 16);
  const NormStatistics statistics = take_statistics(arena, 3, channels), sums = take_statistics(arena, 3, channels),
                       running = take_statistics(arena, 1, channels);
  const Matrix<float> y("test::y", twin.rows, channels), dx("test::dx", twin.rows, channels);
  group_statistics({}, groups, x, statistics);
  normalize_relu({}, groups, statistics, parameters, x, y);
  expect_near(host_values(y), twin.output(), 2e-6, "y");

  const Vector<float> dgamma("test::dgamma", channels), dbeta("test::dbeta", channels);
  normalize_relu_backward({}, groups, statistics, parameters, x, y, dy, dx, dgamma, dbeta, sums);
  const auto loss = [&] { return inner(twin.output(), twin.dy); };
  expect_near(host_values(dx), numeric_gradient(twin.x, loss), 2e-5, "dx");
  expect_near(host_values(dgamma), numeric_gradient(twin.gamma, loss), 2e-5, "dgamma");
  expect_near(host_values(dbeta), numeric_gradient(twin.beta, loss), 2e-5, "dbeta");

  const Matrix<float> observed("test::observed", 3, 2 * channels);
  observe_statistics({}, groups, statistics, observed, 0, channels);
  Values expected_observed, mean, variance;
  for (std::size_t group = 0; group < 3; ++group) {
    const double rows = static_cast<double>(twin.starts[group + 1] - twin.starts[group]) / 2;
    for (std::size_t c = 0; c < channels; ++c) expected_observed.push_back(twin.statistics(group, c).first);
    for (std::size_t c = 0; c < channels; ++c) {
      expected_observed.push_back(twin.statistics(group, c).second * rows / (rows - 1.0));
    }
  }
  expect_near(host_values(observed), expected_observed, 2e-6, "observed");

  for (std::size_t c = 0; c < channels; ++c) {
    mean.push_back(0.1 * static_cast<double>(c));
    variance.push_back(0.5 + static_cast<double>(c));
  }
  Kokkos::deep_copy(running.mean, device_matrix<float>(mean, 1, channels));
  Kokkos::deep_copy(running.variance, device_matrix<float>(variance, 1, channels));
  normalize_relu({}, groups, running, parameters, x, y);
  Values expected;
  for (std::size_t i = 0; i < twin.x.size(); ++i) {
    const std::size_t c = i % channels;
    const double normal = (twin.x[i] - mean[c]) / std::sqrt(variance[c] + 1e-5);
    expected.push_back(std::max(0.0, twin.gamma[c] * normal + twin.beta[c]));
  }
  expect_near(host_values(y), expected, 2e-6, "y by running statistics");
}

TEST(DecoderKernels, RmsNormMatchesTheTwinForAnyNumberOfRows) {
  for (const std::size_t rows : {1u, 32u, 75u}) {
    constexpr std::size_t columns = 11;
    Values x = random_values(rows * columns, 1), weight = random_values(columns, 2);
    const Values dy = random_values(rows * columns, 3), before = random_values(rows * columns, 4);
    const auto output = [&] {
      Values y(x.size());
      for (std::size_t row = 0; row < rows; ++row) {
        double squares = 0.0;
        for (std::size_t c = 0; c < columns; ++c) squares += std::pow(x[row * columns + c], 2) / double(columns);
        for (std::size_t c = 0; c < columns; ++c) {
          y[row * columns + c] = x[row * columns + c] / std::sqrt(squares + 1e-3) * weight[c];
        }
      }
      return y;
    };
    const auto device_x = device_matrix<float>(x, rows, columns), dx = device_matrix<float>(before, rows, columns);
    const Matrix<float> y("test::y", rows, columns);
    const Vector<float> inverse("test::inverse", rows), dweight("test::dweight", columns),
        workspace("test::workspace", column_sum_workspace(rows, columns));
    rms_norm({}, device_vector<float>(weight), 1e-3f, device_x, inverse, y);
    expect_near(host_values(y), output(), 1e-6, "y");
    rms_norm_backward({}, device_vector<float>(weight), device_x, inverse, device_matrix<float>(dy, rows, columns), dx,
                      dweight, workspace);
    const auto loss = [&] { return inner(output(), dy); };
    Values expected = numeric_gradient(x, loss);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    expect_near(host_values(dx), expected, 1e-5, "dx");
    expect_near(host_values(dweight), numeric_gradient(weight, loss), 1e-5, "dweight");
  }
}

TEST(DecoderKernels, SwigluMatchesTheTwin) {
  constexpr std::size_t rows = 9, columns = 7;
  Values gate_up = random_values(rows * 2 * columns, 1, 4.0);
  const Values dy = random_values(rows * columns, 2);
  const auto output = [&] {
    Values y;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const double* row = gate_up.data() + i / columns * 2 * columns + i % columns;
      y.push_back(row[0] / (1.0 + std::exp(-row[0])) * row[columns]);
    }
    return y;
  };
  const auto device = device_matrix<float>(gate_up, rows, 2 * columns);
  const Matrix<float> y("test::y", rows, columns), dgate_up("test::dgate_up", rows, 2 * columns);
  swiglu({}, device, y);
  expect_near(host_values(y), output(), 1e-6, "y");
  swiglu_backward({}, device, device_matrix<float>(dy, rows, columns), dgate_up);
  expect_near(host_values(dgate_up), numeric_gradient(gate_up, [&] { return inner(output(), dy); }), 1e-6, "gradient");
}

TEST(DecoderKernels, TheLargestColumnIsTheFirstOfEquals) {
  const Matrix<float> likeliest("test::likeliest", 3, 1);
  largest_column({}, device_matrix<float>({1, 3, 3, 2, 2, 2, -5, -4, -3}, 3, 3), likeliest);
  EXPECT_EQ(host_values(likeliest), (Values{1, 0, 2}));
}

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
