#include "core/kernels/cross_entropy.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

double loss_of(const Values& logits, std::int32_t label) {
  if (label < 0 || static_cast<std::size_t>(label) >= logits.size()) return 0.0;
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[static_cast<std::size_t>(label)];
}

Values loss_twin(const Values& logits, std::size_t classes, const std::vector<std::int32_t>& labels) {
  Values losses;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
    losses.push_back(loss_of(Values(begin, begin + static_cast<std::ptrdiff_t>(classes)), labels[row]));
  }
  return losses;
}

/// Returns 1 for each row whose label has the largest logit, else 0.
Values hits_twin(const Values& logits, std::size_t classes, const std::vector<std::int32_t>& labels) {
  Values hits;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
    const auto largest = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes)) - begin;
    hits.push_back(largest == labels[row] ? 1.0 : 0.0);
  }
  return hits;
}

/// Points every second label to its row's largest logit.
void hit_every_second(const Values& logits, std::size_t classes, std::vector<std::int32_t>& labels) {
  for (std::size_t row = 0; row < labels.size(); row += 2) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
    labels[row] =
        static_cast<std::int32_t>(std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes)) - begin);
  }
}

double sum(const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

MYLOS_TEST_OF_ELEMENTS(CrossEntropy, ClassesMatchTheTwinAndTheNumericGradient) {
  for (const std::size_t rows : {1u, 3u, 20u}) {
    for (const std::size_t classes : {1u, 7u, 60u, 384u}) {
      if (rows * classes > 1200) continue;  // the numeric gradient takes quadratic time
      Values logits = random_values(rows * classes, 1, 8.0);
      std::vector<std::int32_t> labels;
      for (std::size_t row = 0; row < rows; ++row)
        labels.push_back(static_cast<std::int32_t>(row * 5 % (classes + 1)) - 1);
      const auto device = device_matrix<float>(logits, rows, classes);
      hit_every_second(logits, classes, labels);
      const Vector<float> losses("test::losses", rows), hits("test::hits", rows);
      const Matrix<T> dlogits("test::dlogits", rows, classes);
      cross_entropy<T>(ExecutionSpace(), device, device_integers(labels), 0.25f, losses, dlogits, 0.0f, {}, hits);
      const std::string name = fmt::format("{} x {}", rows, classes);
      EXPECT_EQ(host_values(hits), hits_twin(logits, classes, labels)) << name;
      expect_near(host_values(losses), loss_twin(logits, classes, labels), 1e-6, name + " losses");
      const Values numeric = numeric_gradient(logits, [&] { return 0.25 * sum(loss_twin(logits, classes, labels)); });
      expect_near(host_values(dlogits), numeric, rounding<T> + 1e-6, name + " dlogits");
    }
  }
}

/// Rows that are longer than what a device's team reads at once, and begin at odd elements of the array.
MYLOS_TEST_OF_ELEMENTS(CrossEntropy, LongRowsMatchTheTwin) {
  constexpr std::size_t rows = 9, classes = 4099;
  const Values logits = random_values(rows * classes, 1, 8.0);
  std::vector<std::int32_t> labels{0, 4098, 7, -1, 2048, 4, 4099, 1, 4095};
  hit_every_second(logits, classes, labels);
  labels[6] = static_cast<std::int32_t>(classes);
  const Vector<float> losses("test::losses", rows), hits("test::hits", rows);
  const Matrix<T> dlogits("test::dlogits", rows, classes);
  Kokkos::deep_copy(dlogits, T(9.0f));
  cross_entropy<T>({}, device_matrix<float>(logits, rows, classes), device_integers(labels), 0.5f, losses, dlogits,
                   0.0f, {}, hits);
  EXPECT_EQ(host_values(hits), hits_twin(logits, classes, labels));
  const Values twin = loss_twin(logits, classes, labels);
  expect_near(host_values(losses), twin, 1e-6, "losses");
  Values expected(logits.size(), 0.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t row = i / classes, begin = row * classes;
    if (labels[row] < 0 || labels[row] >= static_cast<std::int32_t>(classes)) continue;
    const auto label = static_cast<std::size_t>(labels[row]);
    const double probability = std::exp(logits[i] - logits[begin + label] - twin[row]);
    expected[i] = 0.5 * (probability - (i - begin == label ? 1.0 : 0.0));
  }
  expect_near(host_values(dlogits), expected, rounding<T> + 1e-6, "dlogits");
}

/// The loss by its definition: (1 - e) times the loss of the label, plus e times the mean loss of all classes.
Values smoothed_twin(const Values& logits, std::size_t classes, const std::vector<std::int32_t>& labels, double e) {
  Values losses = loss_twin(logits, classes, labels);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0 || static_cast<std::size_t>(labels[row]) >= classes) continue;
    double mean = 0.0;
    for (std::size_t other = 0; other < classes; ++other) {
      std::vector<std::int32_t> relabelled = labels;
      relabelled[row] = static_cast<std::int32_t>(other);
      mean += loss_twin(logits, classes, relabelled)[row] / static_cast<double>(classes);
    }
    losses[row] = (1.0 - e) * losses[row] + e * mean;
  }
  return losses;
}

MYLOS_TEST_OF_ELEMENTS(CrossEntropy, SmoothedLabelsMatchTheTwinAndTheNumericGradient) {
  for (const std::size_t classes : {1u, 5u, 67u}) {
    const std::vector<std::int32_t> labels{0, static_cast<std::int32_t>(classes) - 1, -1};
    Values logits = random_values(3 * classes, 1, 8.0);
    const Vector<float> losses("test::losses", 3);
    const Matrix<T> dlogits("test::dlogits", 3, classes);
    cross_entropy<T>({}, device_matrix<float>(logits, 3, classes), device_integers(labels), 0.25f, losses, dlogits,
                     0.125f);
    expect_near(host_values(losses), smoothed_twin(logits, classes, labels, 0.125), 1e-6, "losses");
    const Values numeric =
        numeric_gradient(logits, [&] { return 0.25 * sum(smoothed_twin(logits, classes, labels, 0.125)); });
    expect_near(host_values(dlogits), numeric, rounding<T> + 1e-6, "dlogits");
  }
}

/// Start and end logits (T, 2) of packed sequences.
struct Spans {
  std::vector<std::size_t> starts{0};
  Values logits;
  std::vector<std::int32_t> start_labels, end_labels;

  explicit Spans(const std::vector<std::size_t>& lengths) {
    for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
      starts.push_back(starts.back() + lengths[sample]);
      const auto length = static_cast<std::int32_t>(lengths[sample]);
      start_labels.push_back(static_cast<std::int32_t>(sample) % length);
      end_labels.push_back(length - 1);
    }
    logits = random_values(2 * starts.back(), 3, 10.0);
  }
  std::size_t samples() const { return start_labels.size(); }

  Values losses() const {
    Values all;
    for (std::size_t sample = 0; sample < samples(); ++sample) {
      Values start, end;
      for (std::size_t row = starts[sample]; row < starts[sample + 1]; ++row) {
        start.push_back(logits[2 * row]);
        end.push_back(logits[2 * row + 1]);
      }
      all.push_back(0.5 * (loss_of(start, start_labels[sample]) + loss_of(end, end_labels[sample])));
    }
    return all;
  }

  template <class T>
  std::pair<Values, Values> run(float scale, const ExecutionSpace& space = {},
                                const ConstVector<float>& loss_scale = {}) const {
    const Vector<float> out("test::losses", samples());
    const Matrix<T> dlogits("test::dlogits", starts.back(), 2);
    Kokkos::deep_copy(dlogits, T(9.0f));
    span_cross_entropy<T>(space, device_integers(starts), device_matrix<float>(logits, starts.back(), 2),
                          device_integers(start_labels), device_integers(end_labels), scale, out, dlogits, loss_scale);
    return {host_values(out), host_values(dlogits)};
  }
};

MYLOS_TEST_OF_ELEMENTS(CrossEntropy, SpansMatchTheTwinAndTheNumericGradient) {
  Spans spans({1, 2, 17, 384, 33});
  const auto [losses, dlogits] = spans.run<T>(0.2f);
  expect_near(losses, spans.losses(), 1e-6, "losses");
  const float scale = 0.2f;
  const Values numeric =
      numeric_gradient(spans.logits, [&] { return static_cast<double>(scale) * sum(spans.losses()); });
  expect_near(dlogits, numeric, rounding<T> + 1e-6, "dlogits");
}

TEST(CrossEntropyHits, OfASpanNeedBothEnds) {
  const Vector<float> losses("test::losses", 4), hits("test::hits", 4);
  // Three rows a sequence: the largest start is row 1, the largest end row 2.
  const Values logits = {0, 1, 5, 2, 1, 6, 0, 1, 5, 2, 1, 6, 0, 1, 5, 2, 1, 6, 0, 1, 5, 2, 1, 6};
  span_cross_entropy<float>({}, device_integers(std::vector<std::size_t>{0, 3, 6, 9, 12}),
                            device_matrix<float>(logits, 12, 2),
                            device_integers(std::vector<std::int32_t>{1, 1, 0, -1}),
                            device_integers(std::vector<std::int32_t>{2, 1, 2, 2}), 1.0f, losses, {}, {}, hits);
  EXPECT_EQ(host_values(hits), (Values{1, 0, 0, 0}));
}

MYLOS_TEST_OF_ELEMENTS(CrossEntropy, IgnoredLabelsGiveNoLossAndNoGradient) {
  Spans spans({5, 6, 7, 8});
  spans.start_labels = {-1, 6, 2, -1};
  spans.end_labels = {-1, 7, -100, 3};
  const auto [losses, dlogits] = spans.run<T>(1.0f);
  expect_near(losses, spans.losses(), 1e-6, "losses");
  EXPECT_EQ(losses[0], 0.0);
  EXPECT_EQ(losses[1], 0.0);  // beyond the sequence
  EXPECT_GT(losses[2], 0.0);  // only the start counts
  for (std::size_t i = 0; i < 2 * 11; ++i) EXPECT_EQ(dlogits[i], 0.0) << i;
  for (std::size_t row = 11; row < 18; ++row) EXPECT_EQ(dlogits[2 * row + 1], 0.0) << row;
  for (std::size_t row = 18; row < 26; ++row) EXPECT_EQ(dlogits[2 * row], 0.0) << row;
  EXPECT_NE(dlogits[2 * 11], 0.0);
}

/// A power of two multiplies without rounding, so the factor on the device gives the bits of the same factor from the
/// host.
MYLOS_TEST_OF_ELEMENTS(CrossEntropy, TheLossScaleOnTheDeviceMultipliesTheGradient) {
  const Vector<float> loss_scale = device_vector<float>({64.0});
  const Spans spans({1, 2, 17, 384, 33});
  EXPECT_EQ(spans.run<T>(0.3f, {}, loss_scale), spans.run<T>(64.0f * 0.3f));
  EXPECT_NE(spans.run<T>(0.3f, {}, loss_scale), spans.run<T>(0.3f));
  EXPECT_EQ(spans.run<T>(0.0f, {}, loss_scale), spans.run<T>(0.0f));
  const Values logits = random_values(2 * 5, 4);
  const std::vector<std::int32_t> labels{4, 0};
  const auto classes = [&](float scale, const ConstVector<float>& of_device) {
    const Vector<float> losses("test::losses", 2);
    const Matrix<T> dlogits("test::dlogits", 2, 5);
    cross_entropy<T>({}, device_matrix<float>(logits, 2, 5), device_integers(labels), scale, losses, dlogits, 0.125f,
                     of_device);
    return std::pair(host_values(losses), host_values(dlogits));
  };
  EXPECT_EQ(classes(0.3f, loss_scale), classes(64.0f * 0.3f, {}));
  EXPECT_NE(classes(0.3f, loss_scale), classes(0.3f, {}));
}

MYLOS_TEST_OF_ELEMENTS(CrossEntropy, ComputesLossesAloneWithoutAGradient) {
  const Spans spans({4, 3});
  const Vector<float> losses("test::losses", 2);
  span_cross_entropy<T>({}, device_integers(spans.starts), device_matrix<float>(spans.logits, 7, 2),
                        device_integers(spans.start_labels), device_integers(spans.end_labels), 1.0f, losses, {});
  expect_near(host_values(losses), spans.losses(), 1e-6, "span losses");
  const Values logits = random_values(2 * 5, 4);
  const std::vector<std::int32_t> labels{4, 0};
  cross_entropy<T>({}, device_matrix<float>(logits, 2, 5), device_integers(labels), 1.0f, losses, {});
  expect_near(host_values(losses), loss_twin(logits, 5, labels), 1e-6, "class losses");
}

TEST(CrossEntropyRange, LargeLogitsDoNotOverflowAndNanIsKept) {
  const Values logits{1000.0, -1000.0, 0.0, -3e38, 88.0, 3e38};
  const Vector<float> losses("test::losses", 2);
  const Matrix<float> dlogits("test::dlogits", 2, 3);
  const std::vector<std::int32_t> labels{0, 1};
  cross_entropy<float>({}, device_matrix<float>(logits, 2, 3), device_integers(labels), 1.0f, losses, dlogits);
  EXPECT_EQ(host_values(losses)[0], 0.0);
  EXPECT_NEAR(host_values(losses)[1], 3e38, 1e33);
  for (const double value : host_values(dlogits)) EXPECT_TRUE(std::isfinite(value));
  const Values broken{0.0, std::numeric_limits<double>::quiet_NaN(), 0.0, 1.0, 2.0, 3.0};
  cross_entropy<float>({}, device_matrix<float>(broken, 2, 3), device_integers(labels), 1.0f, losses, dlogits);
  EXPECT_TRUE(std::isnan(host_values(losses)[0]));
  EXPECT_FALSE(std::isnan(host_values(losses)[1]));
  const double impossible = -std::numeric_limits<double>::infinity();
  const Values masked{impossible, 2.0, impossible, impossible, impossible, 7.0};
  cross_entropy<float>({}, device_matrix<float>(masked, 2, 3), device_integers<std::int32_t>({1, 2}), 1.0f, losses,
                       dlogits);
  for (const Values& values : {host_values(losses), host_values(dlogits)}) {
    for (const double value : values) EXPECT_EQ(value, 0.0);
  }
}

TEST(CrossEntropyDeterminism, GivesTheSameBitsOnOneThread) {
  const Spans spans({100, 1, 384, 200, 17, 333});
  EXPECT_EQ(spans.run<float>(0.5f), spans.run<float>(0.5f, one_thread()));
}

TEST(CrossEntropyErrors, ShowBothSides) {
  const Vector<float> two("test::two", 2);
  const Vector<std::int32_t> labels("test::labels", 2), three("test::three", 3);
  const Vector<std::size_t> starts("test::starts", 3);
  const Matrix<float> wide("test::wide", 4, 3), logits("test::logits", 4, 2), rows("test::rows", 2, 5);
  EXPECT_THAT(error_of([&] { span_cross_entropy<float>({}, starts, wide, labels, labels, 1.0f, two, {}); }),
              HasSubstr("span loss: logits have 3 columns, not 2"));
  EXPECT_THAT(error_of([&] { span_cross_entropy<float>({}, starts, logits, labels, three, 1.0f, two, {}); }),
              HasSubstr("span loss: 2 losses for 3 boundaries, 2 start and 3 end labels"));
  EXPECT_THAT(error_of([&] { span_cross_entropy<float>({}, starts, logits, labels, labels, 1.0f, two, wide); }),
              HasSubstr("cross entropy: logits are 4 x 2, their gradient 4 x 3"));
  EXPECT_THAT(error_of([&] { cross_entropy<float>({}, rows, three, 1.0f, two, {}); }),
              HasSubstr("cross entropy: 2 rows of logits, 3 labels, 2 losses"));
  EXPECT_THAT(error_of([&] { cross_entropy<float>({}, rows, labels, 1.0f, two, {}, 1.5f); }),
              HasSubstr("cross entropy: label smoothing 1.5 is not between 0 and 1"));
}

}  // namespace
}  // namespace mylos
