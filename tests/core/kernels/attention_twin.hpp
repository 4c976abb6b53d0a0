#pragma once

#include "core/kernels/attention/attention_proof.hpp"
#include "core/kernels/attention/packed_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

/// Arrays for tests of attention, and their reference: one head of one sequence at a time, in double precision.
namespace mylos::tests {

struct AttentionCase {
  std::string name;
  std::size_t heads, key_value_heads, head_size;
  bool causal;
  float dropout;
  std::vector<std::size_t> lengths;
  int window = no_window;
};

inline void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }

/// A packed batch in device memory with all arguments of the kernels. Sample i is element 10 + i of the global batch.
template <class T>
struct AttentionProblem : PackedAttention<T> {
  using PackedAttention<T>::sequences;
  std::vector<std::size_t> starts{0};
  std::vector<std::uint32_t> ids;

  explicit AttentionProblem(const AttentionCase& c)
      : PackedAttention<T>("test::attention",
                           {c.heads, c.key_value_heads, c.head_size, 1.0f / std::sqrt(static_cast<float>(c.head_size)),
                            c.causal, c.window},
                           c.lengths) {
    this->dropout = {.seed = 11, .step = 5, .site = 3, .probability = c.dropout};
    for (const std::size_t length : c.lengths) {
      ids.push_back(static_cast<std::uint32_t>(10 + ids.size()));
      starts.push_back(starts.back() + length);
    }
    pack();
    fill(this->qkv, 1, 1.5);
    fill(this->dout, 2, 1.0);
    for (const Matrix<T>& result : {this->out, this->dqkv}) Kokkos::deep_copy(result, T(std::nanf("")));
  }

  /// Copies `starts` and `ids` to the device.
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
    attention_forward<T>(ExecutionSpace(), this->shape, sequences, this->dropout, this->qkv, this->out,
                         this->log_sum_exp);
    Kokkos::fence();
  }
  void backward() const {
    attention_backward<T>(ExecutionSpace(), this->shape, sequences, this->dropout, this->qkv, this->out,
                          this->log_sum_exp, this->dout, this->dqkv, this->row_sums);
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

/// The reference: one head of one sequence in double precision, with a stored score matrix.
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
      const std::size_t seen = shape.causal ? i + 1 : length, window = static_cast<std::size_t>(shape.window);
      const std::size_t first = i + 1 > window ? i + 1 - window : 0;
      double sum = 0.0;
      for (std::size_t j = first; j < seen; ++j) {
        double score = 0.0;
        for (std::size_t d = 0; d < size; ++d) score += q[i * size + d] * k[j * size + d];
        sum += probability[i * length + j] = std::exp(shape.scale * score);
        if (!key.active()) continue;
        const std::uint32_t draw = dropout_draw(key, sample, i, head, j / dropout_group)[j % dropout_group];
        factor[i * length + j] = draw >= key.threshold() ? key.scale() : 0.0;
      }
      log_sum_exp[i] = std::log(sum);
      for (std::size_t j = first; j < seen; ++j) {
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

/// The expected results of the kernels, for the whole batch.
struct AttentionExpected {
  std::vector<double> out, log_sum_exp, dqkv;
};

template <class T>
AttentionExpected naive_attention(const AttentionProblem<T>& problem) {
  const AttentionShape& shape = problem.shape;
  const std::size_t size = shape.head_size, columns = shape.columns(), width = shape.heads * size;
  const std::size_t rows = problem.starts.back();
  const std::vector<double> qkv = to_host(problem.qkv), dout = to_host(problem.dout);
  AttentionExpected expected{std::vector<double>(rows * width), std::vector<double>(shape.heads * rows),
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

/// Expects every element of `got` within `tolerance` of `expected`, relative to the largest expected element.
inline void expect_near_largest(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                                const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0.0;
  for (const double x : expected) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * largest) << what << " element " << i;
  }
}

template <class T>
void expect_equal_bits(const AttentionProblem<T>& a, const AttentionProblem<T>& b) {
  EXPECT_EQ(to_host(a.out), to_host(b.out));
  EXPECT_EQ(to_host(a.log_sum_exp), to_host(b.log_sum_exp));
  EXPECT_EQ(to_host(a.dqkv), to_host(b.dqkv));
}

/// Compares both passes of a kernel with the reference. cuDNN keeps statistics of its own.
template <class T>
void compare_with_naive(const AttentionCase& c, AttentionKernel kernel = AttentionKernel::portable) {
  constexpr double tolerance = attention_tolerance<T>;
  AttentionProblem<T> problem(c);
  problem.shape.kernel = kernel;
  problem.forward();
  problem.backward();
  const AttentionExpected expected = naive_attention(problem);
  expect_near_largest(to_host(problem.out), expected.out, tolerance, "out");
  expect_near_largest(to_host(problem.dqkv), expected.dqkv, 2.0 * tolerance, "dqkv");
  if (kernel == AttentionKernel::cudnn) return;
  expect_near_largest(to_host(problem.log_sum_exp), expected.log_sum_exp, 2e-6, "log_sum_exp");
  const AttentionProblem<T> again(c);
  again.forward();
  again.backward();
  expect_equal_bits(problem, again);
}

}  // namespace mylos::tests
