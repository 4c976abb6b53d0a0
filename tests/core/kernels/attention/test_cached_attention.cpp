#include "core/kernels/attention/cached_attention.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

AttentionShape cached_shape(std::size_t heads, std::size_t groups, std::size_t size, int window = no_window) {
  return {.heads = heads,
          .key_value_heads = groups,
          .head_size = size,
          .scale = 1.0f / std::sqrt(static_cast<float>(size)),
          .causal = true,
          .window = window};
}

/// Sequences of these lengths, each in its own slot, with the last sequence in the first slot.
template <class T>
struct CachedSequences {
  AttentionShape shape;
  std::vector<std::size_t> lengths;
  std::vector<Values> qkv;  ///< per sequence, (length, columns)
  KeyValueCache<T> cache;

  CachedSequences(const AttentionShape& of, std::vector<std::size_t> all, std::size_t capacity)
      : shape(of), lengths(std::move(all)) {
    const std::size_t size = lengths.size() * shape.key_value_heads * shape.head_size * capacity;
    // Elements that were never stored must not be read.
    cache = {device_vector<T>(Values(size, std::nan(""))), device_vector<T>(Values(size, std::nan(""))), lengths.size(),
             capacity};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      qkv.push_back(random_values<T>(lengths[i] * shape.columns(), 10 + i, 2.0));
      store(i);
    }
  }
  std::size_t slot(std::size_t sequence) const { return lengths.size() - 1 - sequence; }

  void store(std::size_t sequence) const {
    std::vector<std::int32_t> positions(lengths[sequence]);
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<std::uint32_t> slots{static_cast<std::uint32_t>(slot(sequence))}, samples(lengths[sequence], 0);
    const CachedRows rows{device_integers(slots), device_integers(samples), device_integers(positions),
                          lengths[sequence], 0};
    store_keys_values<T>({}, shape, device_matrix<T>(qkv[sequence], lengths[sequence], shape.columns()), rows, cache);
  }

  /// Returns attention of the last token of these sequences, computed together.
  Matrix<T> attend(const std::vector<std::size_t>& sequences, const ExecutionSpace& space = {}) const {
    Values queries;
    std::vector<std::uint32_t> slots, samples;
    std::vector<std::int32_t> positions;
    CachedRows rows;
    for (const std::size_t sequence : sequences) {
      queries.insert(queries.end(), qkv[sequence].end() - static_cast<std::ptrdiff_t>(shape.columns()),
                     qkv[sequence].end());
      samples.push_back(static_cast<std::uint32_t>(slots.size()));
      slots.push_back(static_cast<std::uint32_t>(slot(sequence)));
      positions.push_back(static_cast<std::int32_t>(lengths[sequence] - 1));
      rows.longest = std::max(rows.longest, lengths[sequence]);
      rows.visible += lengths[sequence];
    }
    rows.slots = device_integers(slots);
    rows.samples = device_integers(samples);
    rows.positions = device_integers(positions);
    const std::size_t floats = cached_attention_workspace(shape, sequences.size(), rows.longest);
    const auto workspace = device_vector<float>(Values(floats, std::nan("")));
    const Matrix<T> out("test::out", sequences.size(), shape.heads * shape.head_size);
    cached_attention<T>(space, shape, device_matrix<T>(queries, sequences.size(), shape.columns()), rows, cache,
                        workspace, out);
    space.fence("test::attend");
    return out;
  }

  /// Computes the same naively, in double.
  Values twin(std::size_t sequence) const {
    const Values& all = qkv[sequence];
    const std::size_t columns = shape.columns(), size = shape.head_size, last = (lengths[sequence] - 1) * columns;
    Values out(shape.heads * size);
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t group = head / (shape.heads / shape.key_value_heads);
      const std::size_t key = (shape.heads + group) * size, value = key + shape.key_value_heads * size;
      Values weights;
      const auto window = static_cast<std::size_t>(shape.window);
      const std::size_t first = lengths[sequence] > window ? lengths[sequence] - window : 0;
      for (std::size_t row = first; row < lengths[sequence]; ++row) {
        double score = 0.0;
        for (std::size_t d = 0; d < size; ++d) score += all[last + head * size + d] * all[row * columns + key + d];
        weights.push_back(std::exp(score * static_cast<double>(shape.scale)));
      }
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::size_t i = 0; i < weights.size() * size; ++i) {
        out[head * size + i % size] += weights[i / size] / sum * all[(first + i / size) * columns + value + i % size];
      }
    }
    return out;
  }
};

MYLOS_TEST_OF_ELEMENTS(CachedAttention, IsThatOfTheTwin) {
  for (const AttentionShape& shape :
       {cached_shape(4, 2, 6), cached_shape(6, 1, 64), cached_shape(3, 3, 2), cached_shape(2, 1, 256),
        cached_shape(4, 2, 6, 1), cached_shape(2, 1, 10, 7), cached_shape(2, 1, 10, 256), cached_shape(2, 2, 8, 257),
        cached_shape(2, 1, 10, 600)}) {
    const CachedSequences<T> sequences(shape, {1, 256, 7, 257, 600}, 611);
    const Values together = host_values(sequences.attend({0, 1, 2, 3, 4}));
    const std::size_t width = together.size() / 5;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto begin = together.begin() + static_cast<std::ptrdiff_t>(i * width);
      const std::string name =
          fmt::format("{} heads of {}, {} tokens", shape.heads, shape.head_size, sequences.lengths[i]);
      expect_near(Values(begin, begin + static_cast<std::ptrdiff_t>(width)), sequences.twin(i), rounding<T> + 4e-6,
                  name);
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(CachedAttention, ARowHasTheSameBitsInEveryCompany) {
  const CachedSequences<T> sequences(cached_shape(4, 2, 10), {300, 5, 256, 513}, 520);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto alone = sequences.attend({i}, one_thread());
    for (const std::size_t other : {0u, 1u, 2u, 3u}) {
      if (other == i) continue;
      const auto pair = sequences.attend({other, i});
      EXPECT_TRUE(same_bits(alone, Matrix<T>(pair.data() + pair.extent(1), 1, pair.extent(1))))
          << i << " after " << other;
    }
  }
}

/// Keys before the window are not read, and take no workspace.
MYLOS_TEST_OF_ELEMENTS(CachedAttention, ReadsOnlyTheWindow) {
  CachedSequences<T> sequences(cached_shape(2, 1, 8, 20), {900}, 900);
  const Values expected = host_values(sequences.attend({0}));
  std::fill_n(sequences.qkv[0].begin(), 880 * sequences.shape.columns(), std::nan(""));
  sequences.store(0);
  EXPECT_EQ(host_values(sequences.attend({0})), expected);
  EXPECT_EQ(cached_attention_workspace(sequences.shape, 1, 900), 2u * 2 * (8 + 2));
  EXPECT_EQ(cached_attention_workspace(cached_shape(2, 1, 8), 1, 900), 2u * 4 * (8 + 2));
}

/// Scores of 200 and more, whose exponentials overflow float.
MYLOS_TEST_OF_ELEMENTS(CachedAttention, LargeScoresStayFinite) {
  CachedSequences<T> sequences(cached_shape(1, 1, 8), {300}, 300);
  for (double& value : sequences.qkv[0]) value = static_cast<float>(T(static_cast<float>(12.0 * value)));
  sequences.store(0);
  for (const double value : host_values(sequences.attend({0}))) EXPECT_TRUE(std::isfinite(value));
}

MYLOS_TEST_OF_ELEMENTS(CachedAttention, RefusesSizesThatDoNotFit) {
  const CachedSequences<T> sequences(cached_shape(2, 1, 4), {3}, 5);
  const auto none = device_integers(std::vector<std::uint32_t>{0});
  const auto first = device_integers(std::vector<std::int32_t>{0});
  const auto attend = [&](const CachedRows& rows, std::size_t columns, std::size_t floats) {
    return error_of([&] {
      cached_attention<T>({}, sequences.shape, Matrix<T>("test::qkv", 1, columns), rows, sequences.cache,
                          Vector<float>("test::workspace", floats), Matrix<T>("test::out", 1, 8));
    });
  };
  EXPECT_THAT(attend({none, none, first, 1, 1}, 15, 100), HasSubstr("qkv is 1 x 15 for 16 columns"));
  EXPECT_THAT(attend({none, none, first, 6, 6}, 16, 100),
              HasSubstr("6 positions in a cache of 1 slots and 5 positions"));
  EXPECT_THAT(attend({none, none, first, 5, 5}, 16, 11), HasSubstr("the workspace has 11 floats of 12"));
}

}  // namespace
}  // namespace mylos
