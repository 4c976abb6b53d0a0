#include "core/kernels/attention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace mylos {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  std::size_t heads, key_value_heads, head_size;
  bool causal;
  float dropout;
  std::vector<std::size_t> lengths;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// A packed batch in device memory with everything the kernels take. Sample i is element 10 + i of the global batch.
template <class T>
struct Problem {
  AttentionShape shape;
  DropoutKey dropout;
  std::vector<std::size_t> starts{0};
  std::vector<std::uint32_t> ids;
  PackedSequences sequences;
  Matrix<T> qkv, out, dout, dqkv;
  Matrix<float> log_sum_exp, row_sums;

  explicit Problem(const Case& c) {
    shape = {c.heads, c.key_value_heads, c.head_size, 1.0f / std::sqrt(static_cast<float>(c.head_size)), c.causal};
    dropout = {.seed = 11, .step = 5, .site = 3, .probability = c.dropout};
    for (const std::size_t length : c.lengths) {
      ids.push_back(static_cast<std::uint32_t>(10 + ids.size()));
      starts.push_back(starts.back() + length);
    }
    const std::size_t rows = starts.back(), width = c.heads * c.head_size;
    qkv = Matrix<T>("qkv", rows, shape.columns());
    dqkv = Matrix<T>("dqkv", rows, shape.columns());
    out = Matrix<T>("out", rows, width);
    dout = Matrix<T>("dout", rows, width);
    log_sum_exp = Matrix<float>("log_sum_exp", c.heads, rows);
    row_sums = Matrix<float>("row_sums", c.heads, rows);
    pack();
    fill(qkv, 1, 1.5);
    fill(dout, 2, 1.0);
    Kokkos::deep_copy(dqkv, T(7.0f));  // whatever was there is overwritten
  }

  /// Tells the kernels of `starts` and `ids`.
  void pack() {
    const Vector<std::size_t> device_starts("starts", starts.size());
    const Vector<std::uint32_t> device_ids("ids", ids.size());
    Kokkos::deep_copy(device_starts, HostVector<std::size_t>(starts.data(), starts.size()));
    Kokkos::deep_copy(device_ids, HostVector<std::uint32_t>(ids.data(), ids.size()));
    sequences = {device_starts, device_ids, 0};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      sequences.longest = std::max(sequences.longest, starts[i + 1] - starts[i]);
    }
  }

  static void fill(const Matrix<T>& matrix, std::uint64_t stream, double size) {
    const auto host = Kokkos::create_mirror_view(matrix);
    for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = T(static_cast<float>(size * normal(9, stream, i)));
    Kokkos::deep_copy(matrix, host);
  }

  void forward() const {
    attention_forward<T>(ExecutionSpace(), shape, sequences, dropout, qkv, out, log_sum_exp);
    Kokkos::fence();
  }
  void backward() const {
    attention_backward<T>(ExecutionSpace(), shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums);
    Kokkos::fence();
  }
};

template <class View>
std::vector<double> to_host(const View& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), view);
  std::vector<double> values(host.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(host.data()[i]);
  return values;
}

/// The oracle: one head of one sequence in double, with the score matrix stored.
struct NaiveHead {
  std::size_t length = 0, size = 0;
  std::vector<double> q{}, k{}, v{}, dout{};
  std::vector<double> probability{}, factor{};  ///< (length, length)
  std::vector<double> out{}, dq{}, dk{}, dv{}, log_sum_exp{};

  void forward(const AttentionShape& shape, const DropoutKey& key, std::uint32_t sample, std::uint32_t head) {
    probability.assign(length * length, 0.0);
    factor.assign(length * length, 1.0);
    out.assign(length * size, 0.0);
    log_sum_exp.assign(length, 0.0);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t seen = shape.causal ? i + 1 : length;
      double sum = 0.0;
      for (std::size_t j = 0; j < seen; ++j) {
        double score = 0.0;
        for (std::size_t d = 0; d < size; ++d) score += q[i * size + d] * k[j * size + d];
        sum += probability[i * length + j] = std::exp(shape.scale * score);
        if (!key.active()) continue;
        const std::uint32_t draw = dropout_draw(key, sample, i, head, j / dropout_group)[j % dropout_group];
        factor[i * length + j] = draw >= key.threshold() ? key.scale() : 0.0;
      }
      log_sum_exp[i] = std::log(sum);
      for (std::size_t j = 0; j < seen; ++j) {
        probability[i * length + j] /= sum;
        const double weight = probability[i * length + j] * factor[i * length + j];
        for (std::size_t d = 0; d < size; ++d) out[i * size + d] += weight * v[j * size + d];
      }
    }
  }

  void backward(double scale) {
    dq.assign(length * size, 0.0);
    dk = dv = dq;
    for (std::size_t i = 0; i < length; ++i) {
      double row_sum = 0.0;
      for (std::size_t d = 0; d < size; ++d) row_sum += out[i * size + d] * dout[i * size + d];
      for (std::size_t j = 0; j < length; ++j) {
        const double p = probability[i * length + j], m = factor[i * length + j];
        double dp = 0.0;
        for (std::size_t d = 0; d < size; ++d) {
          dp += m * dout[i * size + d] * v[j * size + d];
          dv[j * size + d] += p * m * dout[i * size + d];
        }
        const double dscore = scale * p * (dp - row_sum);
        for (std::size_t d = 0; d < size; ++d) {
          dq[i * size + d] += dscore * k[j * size + d];
          dk[j * size + d] += dscore * q[i * size + d];
        }
      }
    }
  }
};

/// What the kernels should give, for the whole batch.
struct Expected {
  std::vector<double> out, log_sum_exp, dqkv;
};

template <class T>
Expected naive(const Problem<T>& problem) {
  const AttentionShape& shape = problem.shape;
  const std::size_t size = shape.head_size, columns = shape.columns(), width = shape.heads * size;
  const std::size_t rows = problem.starts.back();
  const std::vector<double> qkv = to_host(problem.qkv), dout = to_host(problem.dout);
  Expected expected{std::vector<double>(rows * width), std::vector<double>(shape.heads * rows),
                    std::vector<double>(rows * columns)};
  for (std::size_t s = 0; s < problem.ids.size(); ++s) {
    const std::size_t first = problem.starts[s], length = problem.starts[s + 1] - first;
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t key_head = shape.heads + head / (shape.heads / shape.key_value_heads);
      const auto gather = [&](const std::vector<double>& from, std::size_t stride, std::size_t column) {
        std::vector<double> to(length * size);
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[(first + i / size) * stride + column + i % size];
        return to;
      };
      const auto scatter = [&](const std::vector<double>& from, std::vector<double>& to, std::size_t stride,
                               std::size_t column) {
        for (std::size_t i = 0; i < from.size(); ++i) to[(first + i / size) * stride + column + i % size] += from[i];
      };
      const std::size_t value_head = key_head + shape.key_value_heads;
      NaiveHead naive{.length = length, .size = size};
      naive.q = gather(qkv, columns, head * size);
      naive.k = gather(qkv, columns, key_head * size);
      naive.v = gather(qkv, columns, value_head * size);
      naive.dout = gather(dout, width, head * size);
      naive.forward(shape, problem.dropout, problem.ids[s], static_cast<std::uint32_t>(head));
      naive.backward(shape.scale);
      scatter(naive.out, expected.out, width, head * size);
      scatter(naive.dq, expected.dqkv, columns, head * size);
      scatter(naive.dk, expected.dqkv, columns, key_head * size);
      scatter(naive.dv, expected.dqkv, columns, value_head * size);
      std::copy(naive.log_sum_exp.begin(), naive.log_sum_exp.end(), expected.log_sum_exp.begin() + head * rows + first);
    }
  }
  return expected;
}

/// Every element of `got` is within `tolerance` of `expected`, as a part of the largest expected one.
void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                 const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0.0;
  for (const double x : expected) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * largest) << what << " element " << i;
  }
}

template <class T>
void compare_with_naive(const Case& c, double tolerance) {
  const Problem<T> problem(c);
  problem.forward();
  problem.backward();
  const Expected expected = naive(problem);
  expect_near(to_host(problem.out), expected.out, tolerance, "out");
  expect_near(to_host(problem.log_sum_exp), expected.log_sum_exp, 2e-6, "log_sum_exp");
  expect_near(to_host(problem.dqkv), expected.dqkv, 2.0 * tolerance, "dqkv");
}

const std::vector<Case> cases = {
    {"Plain", 2, 2, 32, false, 0.0f, {7, 40, 1, 33}},
    {"OddHeads", 3, 3, 20, false, 0.0f, {5, 64, 31}},
    {"OneSequence", 1, 1, 64, false, 0.0f, {96}},
    {"OneRow", 4, 4, 16, false, 0.0f, {1}},
    {"OneRowCausalDropout", 2, 2, 5, true, 0.5f, {1}},
    {"EightySequences", 2, 2, 8, false, 0.0f, std::vector<std::size_t>(80, 9)},
    {"Long", 1, 1, 32, false, 0.0f, {384, 257}},
    {"LongerThanTwoBlocks", 1, 1, 24, false, 0.1f, {531}},
    {"Causal", 2, 2, 32, true, 0.0f, {1, 70, 32, 300}},
    {"CausalOddDropout", 3, 3, 20, true, 0.2f, {33, 280, 2}},
    {"Grouped", 6, 2, 16, false, 0.0f, {50, 17}},
    {"GroupedCausalDropout", 4, 1, 40, true, 0.1f, {50, 17, 130}},
    {"Dropout", 2, 2, 32, false, 0.1f, {8, 100, 61, 385}},
    {"LargeHead", 1, 1, 130, false, 0.3f, {45}},
};

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, EqualsNaiveTwinInFloat) { compare_with_naive<float>(GetParam(), 3e-6); }
TEST_P(Attention, EqualsNaiveTwinInBfloat16) { compare_with_naive<bfloat16>(GetParam(), 1.2e-2); }
TEST_P(Attention, EqualsNaiveTwinInHalf) { compare_with_naive<half>(GetParam(), 1.5e-3); }

TEST_P(Attention, SecondRunIsBitwiseEqual) {
  const Problem<float> a(GetParam()), b(GetParam());
  for (const Problem<float>* problem : {&a, &b}) {
    problem->forward();
    problem->backward();
  }
  EXPECT_EQ(to_host(a.out), to_host(b.out));
  EXPECT_EQ(to_host(a.log_sum_exp), to_host(b.log_sum_exp));
  EXPECT_EQ(to_host(a.dqkv), to_host(b.dqkv));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

/// Rows [begin, end) of a matrix on the host.
std::vector<double> rows_of(const Matrix<float>& matrix, std::size_t begin, std::size_t end) {
  return to_host(Matrix<float>(Kokkos::subview(matrix, Kokkos::make_pair(begin, end), Kokkos::ALL)));
}

TEST(AttentionPacking, SequenceAloneGivesTheSameBits) {
  for (const bool causal : {false, true}) {
    const Case packed{"", 3, 1, 20, causal, 0.1f, {40, 77, 300, 1}};
    const Problem<float> together(packed);
    together.forward();
    together.backward();
    for (std::size_t s = 0; s < packed.lengths.size(); ++s) {
      Case single = packed;
      single.lengths = {packed.lengths[s]};
      Problem<float> alone(single);
      alone.ids = {together.ids[s]};
      alone.pack();
      const auto rows = Kokkos::make_pair(together.starts[s], together.starts[s + 1]);
      Kokkos::deep_copy(alone.qkv, Kokkos::subview(together.qkv, rows, Kokkos::ALL));
      Kokkos::deep_copy(alone.dout, Kokkos::subview(together.dout, rows, Kokkos::ALL));
      alone.forward();
      alone.backward();
      EXPECT_EQ(to_host(alone.out), rows_of(together.out, rows.first, rows.second)) << "sequence " << s;
      EXPECT_EQ(to_host(alone.dqkv), rows_of(together.dqkv, rows.first, rows.second)) << "sequence " << s;
    }
  }
}

TEST(AttentionDropout, DependsOnSampleStepSiteAndHead) {
  const Case c{"", 2, 2, 16, false, 0.3f, {48}};
  const auto outcome = [&](const std::function<void(Problem<float>&)>& change) {
    Problem<float> problem(c);
    change(problem);
    problem.forward();
    return to_host(problem.out);
  };
  const auto plain = outcome([](Problem<float>&) {});
  EXPECT_NE(plain, outcome([](Problem<float>& p) { p.dropout.seed += 1; }));
  EXPECT_NE(plain, outcome([](Problem<float>& p) { p.dropout.step += 1; }));
  EXPECT_NE(plain, outcome([](Problem<float>& p) { p.dropout.site += 1; }));
  EXPECT_NE(plain, outcome([](Problem<float>& p) {
              p.ids[0] += 1;
              p.pack();
            }));
  EXPECT_NE(plain, outcome([](Problem<float>& p) { p.dropout.probability = 0.0f; }));
}

/// Central differences of sum(out * dout), a random projection, by every element of qkv.
TEST(AttentionJacobian, BackwardIsTheDerivativeOfForward) {
  for (const Case& c : {Case{"", 2, 2, 4, false, 0.0f, {5, 3}}, Case{"", 4, 2, 5, true, 0.25f, {6, 9}}}) {
    const Problem<float> problem(c);
    problem.forward();
    problem.backward();
    const auto qkv = Kokkos::create_mirror_view(problem.qkv);  // may be the same memory
    const auto dout = to_host(problem.dout), dqkv = to_host(problem.dqkv);
    const auto projection = [&](std::size_t element, float value) {
      const float before = std::exchange(qkv.data()[element], value);
      Kokkos::deep_copy(problem.qkv, qkv);
      problem.forward();
      qkv.data()[element] = before;
      const auto out = to_host(problem.out);
      return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
    };
    Kokkos::deep_copy(qkv, problem.qkv);
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const float x = qkv.data()[i], above = x + 0.01f, below = x - 0.01f;
      const double slope = (projection(i, above) - projection(i, below)) / (static_cast<double>(above) - below);
      ASSERT_NEAR(dqkv[i], slope, 2e-3) << c.heads << " heads, element " << i;
    }
  }
}

TEST(AttentionRange, LargeScoresDoNotOverflow) {
  const Problem<float> problem({"", 1, 1, 16, false, 0.0f, {300}});
  Kokkos::deep_copy(problem.qkv, 0.0f);
  const auto host = Kokkos::create_mirror_view(problem.qkv);
  for (std::size_t row = 0; row < 300; ++row) {
    for (std::size_t d = 0; d < 16; ++d) {
      host(row, d) = 100.0f;
      host(row, 16 + d) = static_cast<float>(row);  // the last key, in the second block, outweighs all others
      host(row, 32 + d) = static_cast<float>(row);
    }
  }
  Kokkos::deep_copy(problem.qkv, host);
  problem.forward();
  for (const double x : to_host(problem.out)) ASSERT_EQ(x, 299.0);
}

TEST(AttentionErrors, ShapesThatDoNotFitAreRefused) {
  const auto message = [](const std::function<void(Problem<float>&)>& change, bool backward) -> std::string {
    Problem<float> problem({"", 4, 2, 8, false, 0.0f, {5, 3}});
    change(problem);
    try {
      backward ? problem.backward() : problem.forward();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  for (const bool backward : {false, true}) {
    EXPECT_THAT(message([](auto& p) { p.shape.key_value_heads = 3; }, backward),
                HasSubstr("4 heads are not a multiple of 3 key-value heads"));
    EXPECT_THAT(message([](auto& p) { p.shape.key_value_heads = 0; }, backward), HasSubstr("0 key-value heads"));
    EXPECT_THAT(message([](auto& p) { p.shape.head_size = 9; }, backward),
                HasSubstr("qkv has 64 columns, (4 + 2 * 2) heads of 9 need 72"));
    EXPECT_THAT(message([](auto& p) { p.out = p.dout = Matrix<float>("", 8, 31); }, backward),
                HasSubstr("out has 31 columns, 4 heads of 8 need 32"));
    EXPECT_THAT(message([](auto& p) { p.sequences.sample_ids = Vector<std::uint32_t>("", 3); }, backward),
                HasSubstr("3 sequence starts for 3 samples, not 4"));
    EXPECT_THAT(message([](auto& p) { p.sequences.longest = 9; }, backward),
                HasSubstr("the longest sequence has 9 rows, the batch 8"));
  }
}

TEST(AttentionScratch, IsThatOfTheTeamsADeviceRunsAtOnce) {
  const AttentionShape shape{.heads = 12, .key_value_heads = 12, .head_size = 64};
  constexpr std::size_t array = 384 * 64 * sizeof(float), plenty = 1 << 30;
  const std::size_t forward = attention_forward_scratch(shape, 1, 384, plenty),
                    backward = attention_backward_scratch(shape, 1, 384, plenty);
  // A team has keys and values of its sequence, and in the backward pass both transposed and their gradients.
  EXPECT_GE(forward, 12 * 2 * array);
  EXPECT_GE(backward, 12 * 5 * array);
  EXPECT_LE(backward, 12 * 8 * array) << "with what may not be in fast memory";
  EXPECT_EQ(attention_backward_scratch(shape, 3, 384, plenty), 3 * backward);
  EXPECT_EQ(attention_backward_scratch(shape, 3, 384, 32 * 10), backward * 10 / 12) << "10 teams at once";
  EXPECT_EQ(attention_backward_scratch(shape, 0, 0, plenty), 0u);
  EXPECT_GT(attention_backward_scratch(shape, 1, 385, plenty), backward);
}

TEST(AttentionScratch, GrowsWhereHeadsDoNotFitFastMemory) {
  const auto of_head = [](std::size_t size) {
    return attention_backward_scratch({.heads = 1, .key_value_heads = 1, .head_size = size}, 1, 32, 1 << 20);
  };
  EXPECT_GT(of_head(512), 8 * of_head(64));
}

}  // namespace
}  // namespace mylos
