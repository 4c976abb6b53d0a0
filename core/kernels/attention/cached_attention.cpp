#include "core/kernels/attention/cached_attention.hpp"

#include "core/base/error.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/rotary.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos {
namespace {

/// Positions per block: large enough to be worth a team, and small enough that one long sequence occupies all teams.
constexpr std::size_t cached_block = 256;
/// Besides the sum of values, a block stores its largest score and the sum of its exponentials.
constexpr std::size_t statistics = 2;

/// Returns the largest number of blocks that a row with up to `longest` positions sees. A window may begin and end
/// within a block.
std::size_t most_seen_blocks(const AttentionShape& shape, std::size_t longest) {
  const auto blocks_of = [](std::size_t positions) { return (positions + cached_block - 1) / cached_block; };
  return std::min(blocks_of(longest), blocks_of(static_cast<std::size_t>(shape.window)) + 1);
}

/// The first key and value of a sequence's head.
template <class T>
struct CachedHead {
  T *keys, *values;
  std::size_t size, positions;

  KOKKOS_FORCEINLINE_FUNCTION CachedHead(const AttentionShape& shape, const KeyValueCache<T>& cache, std::size_t slot,
                                         std::size_t head)
      : size(shape.head_size), positions(cache.positions) {
    const std::size_t before = (slot * shape.key_value_heads + head) * size * positions;
    keys = cache.keys.data() + before;
    values = cache.values.data() + before;
  }
};

template <class T>
struct StoreRow {
  AttentionShape shape;
  ConstMatrix<T> qkv;
  CachedRows rows;
  KeyValueCache<T> cache;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t size = shape.head_size, heads = shape.key_value_heads;
    const auto position = static_cast<std::size_t>(rows.positions(row));
    const CachedHead<T> first(shape, cache, rows.slot(row), 0);
    const T* const keys = qkv.data() + row * qkv.extent(1) + shape.heads * size;
    const T* const values = keys + heads * size;
    team_for(team, heads * size, [=](std::size_t i) {
      // Heads have the same stride in keys and values, so element i over all heads is row i of the keys.
      first.keys[i * first.positions + position] = keys[i];
      first.values[(i / size * first.positions + position) * size + i % size] = values[i];
    });
  }
};

/// The partial results of the blocks of each head of a row: (B, A, blocks, D + 2).
struct BlockResults {
  float* data;
  std::size_t heads, blocks, size;

  KOKKOS_FORCEINLINE_FUNCTION float* at(std::size_t row, std::size_t head, std::size_t block) const {
    return data + ((row * heads + head) * blocks + block) * (size + statistics);
  }
};

/// The blocks of positions that a row sees; the launch and the results count them from `first`.
struct SeenBlocks {
  std::size_t begin, end;  ///< positions
  std::size_t first;       ///< block of `begin`

  KOKKOS_FORCEINLINE_FUNCTION SeenBlocks(const AttentionShape& shape, std::int32_t position)
      : begin(static_cast<std::size_t>(shape.mask().first_key(position))),
        end(static_cast<std::size_t>(position) + 1),
        first(begin / cached_block) {}
  KOKKOS_FORCEINLINE_FUNCTION std::size_t count() const { return (end - 1) / cached_block + 1 - first; }
};

/// Computes a block's exponentials, relative to its largest score, and the sums of values weighted by them.
template <class T>
struct CachedBlock {
  AttentionShape shape;
  ConstMatrix<T> qkv;
  CachedRows rows;
  KeyValueCache<T> cache;
  BlockResults results;

  KOKKOS_INLINE_FUNCTION void operator()(const HostTeam& team, std::size_t item) const {
    float weights[cached_block];
    run(team, item, weights);
  }
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t item) const {
    run(team, item, static_cast<float*>(team.team_scratch(0).get_shmem(cached_block * sizeof(float))));
  }

 private:
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, std::size_t item, float* weights) const {
    const std::size_t block = item % results.blocks, head = item / results.blocks % shape.heads;
    const std::size_t row = item / results.blocks / shape.heads;
    const SeenBlocks seen(shape, rows.positions(row));
    if (block >= seen.count()) return;
    const std::size_t begin_of_block = (seen.first + block) * cached_block,
                      end_of_block = begin_of_block + cached_block;
    const std::size_t begin = begin_of_block < seen.begin ? seen.begin : begin_of_block;
    const std::size_t count = (end_of_block < seen.end ? end_of_block : seen.end) - begin;
    const CachedHead<T> cached(shape, cache, rows.slot(row), head / (shape.heads / shape.key_value_heads));
    const T* const query = qkv.data() + row * qkv.extent(1) + head * shape.head_size;
    make_scores(team, query, cached, begin, count, weights);
    team_barrier(team);
    const float largest = team_max(team, count, [=](std::size_t i) { return weights[i]; });
    team_for(team, count, [=](std::size_t i) { weights[i] = exp_approximate(weights[i] - largest); });
    team_barrier(team);
    const float sum = team_sum(team, count, [=](std::size_t i) { return weights[i]; });
    float* const out = results.at(row, head, block);
    add_values(team, cached, begin, count, weights, out);
    out[shape.head_size] = largest;
    out[shape.head_size + 1] = sum;
  }

  /// Computes the scores with the loop over head elements outside, so that the loop over positions vectorises.
  KOKKOS_FORCEINLINE_FUNCTION void make_scores(const HostTeam& team, const T* query, const CachedHead<T>& cached,
                                               std::size_t begin, std::size_t count, float* scores) const {
    team_for(team, count, [=](std::size_t i) { scores[i] = 0.0f; });
    for (std::size_t d = 0; d < cached.size; ++d) {
      const float q = shape.scale * float(query[d]);
      const T* const keys = cached.keys + d * cached.positions + begin;
      team_for(team, count, [=](std::size_t i) { scores[i] += q * float(keys[i]); });
    }
  }
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void make_scores(const Team& team, const T* query, const CachedHead<T>& cached,
                                               std::size_t begin, std::size_t count, float* scores) const {
    const float scale = shape.scale;
    team_for(team, count, [=](std::size_t i) {
      float score = 0.0f;
      for (std::size_t d = 0; d < cached.size; ++d) {
        score += scale * float(query[d]) * float(cached.keys[d * cached.positions + begin + i]);
      }
      scores[i] = score;
    });
  }

  /// out (D) = weights times values, summed in the order of positions.
  KOKKOS_FORCEINLINE_FUNCTION void add_values(const HostTeam& team, const CachedHead<T>& cached, std::size_t begin,
                                              std::size_t count, const float* weights, float* out) const {
    float sum[largest_rotary_head];
    team_for(team, cached.size, [&](std::size_t d) { sum[d] = 0.0f; });
    for (std::size_t i = 0; i < count; ++i) {
      const float weight = weights[i];
      const T* const values = cached.values + (begin + i) * cached.size;
      team_for(team, cached.size, [&](std::size_t d) { sum[d] += weight * float(values[d]); });
    }
    team_for(team, cached.size, [&](std::size_t d) { out[d] = sum[d]; });
  }
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_values(const Team& team, const CachedHead<T>& cached, std::size_t begin,
                                              std::size_t count, const float* weights, float* out) const {
    team_for(team, cached.size, [=](std::size_t d) {
      float sum = 0.0f;
      for (std::size_t i = 0; i < count; ++i) sum += weights[i] * float(cached.values[(begin + i) * cached.size + d]);
      out[d] = sum;
    });
  }
};

/// Combines the blocks of one head of one row, with each sum rescaled to the largest score of all blocks.
template <class T>
struct CombineBlocks {
  AttentionShape shape;
  CachedRows rows;
  BlockResults results;
  Matrix<T> out;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t item) const {
    const std::size_t row = item / results.heads, head = item % results.heads, size = results.size;
    const std::size_t blocks = SeenBlocks(shape, rows.positions(row)).count();
    const BlockResults all = results;
    float largest = -Kokkos::Experimental::infinity_v<float>;
    for (std::size_t block = 0; block < blocks; ++block) {
      const float one = all.at(row, head, block)[size];
      largest = largest < one ? one : largest;
    }
    float sum = 0.0f;
    for (std::size_t block = 0; block < blocks; ++block) {
      const float* const part = all.at(row, head, block);
      sum += exp_approximate(part[size] - largest) * part[size + 1];
    }
    T* const to = out.data() + item * size;
    team_for(team, size, [=](std::size_t d) {
      float value = 0.0f;
      for (std::size_t block = 0; block < blocks; ++block) {
        const float* const part = all.at(row, head, block);
        value += exp_approximate(part[size] - largest) * part[d];
      }
      to[d] = T(value / sum);
    });
  }
};

template <class T>
void check_cached(const AttentionShape& shape, const ConstMatrix<T>& qkv, const CachedRows& rows,
                  const KeyValueCache<T>& cache) {
  require(qkv.extent(1) == shape.columns() && shape.head_size <= largest_rotary_head &&
              rows.samples.size() == qkv.extent(0) && rows.positions.size() == qkv.extent(0),
          fmt::format("cached attention: qkv is {} x {} for {} columns of heads of {} (at most {}), samples of {} "
                      "rows and {} positions",
                      qkv.extent(0), qkv.extent(1), shape.columns(), shape.head_size, largest_rotary_head,
                      rows.samples.size(), rows.positions.size()));
  const std::size_t size = cache.slots * shape.key_value_heads * shape.head_size * cache.positions;
  require(
      rows.longest <= cache.positions && cache.keys.size() == size && cache.values.size() == size,
      fmt::format("cached attention: {} positions in a cache of {} slots and {} positions, which has {} keys and {} "
                  "values, not {}",
                  rows.longest, cache.slots, cache.positions, cache.keys.size(), cache.values.size(), size));
}

}  // namespace

template <class T>
void store_keys_values(const ExecutionSpace& space, const AttentionShape& shape, const ConstMatrix<T>& qkv,
                       const CachedRows& rows, const KeyValueCache<T>& cache) {
  check_cached(shape, qkv, rows, cache);
  const std::size_t moved = 2 * shape.key_value_heads * shape.head_size;
  const Work work = work_of(qkv.extent(0) * moved, 0.0, 2.0 * sizeof(T));
  for_each_row(with_work("mylos::cached_attention::store", work), space, qkv.extent(0),
               StoreRow<T>{shape, qkv, rows, cache}, {.threads = team_size_for(space, moved / 2)});
}

std::size_t cached_attention_workspace(const AttentionShape& shape, std::size_t rows, std::size_t longest) {
  return rows * shape.heads * most_seen_blocks(shape, longest) * (shape.head_size + statistics);
}

template <class T>
void cached_attention(const ExecutionSpace& space, const AttentionShape& shape, const ConstMatrix<T>& qkv,
                      const CachedRows& rows, const KeyValueCache<T>& cache, const Vector<float>& workspace,
                      const Matrix<T>& out) {
  check_cached(shape, qkv, rows, cache);
  const std::size_t count = qkv.extent(0), columns = shape.heads * shape.head_size;
  require(out.extent(0) == count && out.extent(1) == columns &&
              workspace.size() >= cached_attention_workspace(shape, count, rows.longest),
          fmt::format("cached attention of {} x {}: out is {} x {}, and the workspace has {} floats of {}", count,
                      columns, out.extent(0), out.extent(1), workspace.size(),
                      cached_attention_workspace(shape, count, rows.longest)));
  const BlockResults results{workspace.data(), shape.heads, most_seen_blocks(shape, rows.longest), shape.head_size};
  // One score and one weighted value per head element, and the softmax; keys and values are read once per group. With a
  // window, an upper bound of what rows at different positions see.
  const auto seen = static_cast<double>(std::min(rows.visible, count * static_cast<std::size_t>(shape.window))),
             heads = static_cast<double>(shape.heads);
  const auto size = static_cast<double>(shape.head_size), groups = static_cast<double>(shape.key_value_heads);
  const Work work{seen * heads * (4.0 * size + exp_flops + 2.0), seen * groups * 2.0 * size * sizeof(T)};
  for_each_row(with_work("mylos::cached_attention::blocks", work), space, count * shape.heads * results.blocks,
               CachedBlock<T>{shape, qkv, rows, cache, results}, {.scratch_bytes = cached_block * sizeof(float)});
  const Work combined =
      work_of(count * shape.heads * results.blocks * (shape.head_size + statistics), 2.0, sizeof(float));
  for_each_row(with_work("mylos::cached_attention::combine", combined + work_of(out.size(), 1.0, sizeof(T))), space,
               count * shape.heads, CombineBlocks<T>{shape, rows, results, out},
               {.threads = team_size_for(space, shape.head_size)});
}

#define MYLOS_INSTANTIATE(T)                                                                              \
  template void store_keys_values<T>(const ExecutionSpace&, const AttentionShape&, const ConstMatrix<T>&, \
                                     const CachedRows&, const KeyValueCache<T>&);                         \
  template void cached_attention<T>(const ExecutionSpace&, const AttentionShape&, const ConstMatrix<T>&,  \
                                    const CachedRows&, const KeyValueCache<T>&, const Vector<float>&,     \
                                    const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
