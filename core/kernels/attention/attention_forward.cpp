#include "core/base/error.hpp"
#include "core/batch.hpp"
#include "core/kernels/attention/attention_blocks.hpp"
#include "core/kernels/attention/attention_dropout.hpp"
#include "core/kernels/attention/attention_lanes.hpp"
#include "core/kernels/attention/attention_tiles.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/attention/cudnn_attention.hpp"
#include "core/kernels/attention/cudnn_attention_sizes.hpp"
#include "core/kernels/attention/tensor_core_attention.hpp"
#include "core/kernels/math.hpp"

/// For each block of queries: computes scores against a block of keys, the softmax with a running maximum and sum, and
/// products with the values; divides rows by their sums at the end. A block has up to 256 keys on a host, so most
/// sequences need one or two. A team computes one head of a sequence or, for a long sequence, a block of its queries
/// (attention_tiles.hpp). On a host, most heads in float are computed by attention_lanes.hpp instead.
namespace mylos {
namespace attention {
namespace {

/// The state of a query row after some blocks of keys; the maximum is of unscaled q k^T.
struct RunningRow {
  float maximum, sum;
};

/// The scratch of a team. Pairs are along columns in `keys`, `query` and `probabilities`, along rows in `values`.
template <class Operand>
struct ForwardScratch {
  Operand *keys, *values;          ///< panels of transposed keys; (keys padded, depth)
  Operand *query, *probabilities;  ///< (query block, depth), (query block, key block); if float, `probabilities` is
                                   ///< `scores`
  float *scores, *sums;            ///< (query block, key block), (query block, depth)
  float* draws;
  RunningRow* rows;       ///< (query block)
  float* kept_sums;       ///< (queries of a part, depth), between tiles of keys
  RunningRow* kept_rows;  ///< (queries of a part)
};

template <class Operand>
struct ForwardSizes : BlockSizes {
  static constexpr bool in_place = inner_of<Operand> == 1;
  int kept_queries;  ///< 0 if all keys are loaded at once

  ForwardSizes(const QueryParts& parts, int head_size)
      : BlockSizes(parts.side, head_size), kept_queries(parts.parts == 1 ? 0 : parts.side) {}

  KOKKOS_INLINE_FUNCTION int keys() const { return padded_keys * depth / inner_of<Operand>; }
  KOKKOS_INLINE_FUNCTION int queries() const { return query_block * depth / inner_of<Operand>; }
  KOKKOS_INLINE_FUNCTION int probabilities() const {
    return in_place ? 0 : query_block * block_keys / inner_of<Operand>;
  }
  std::size_t large() const {
    return scratch_bytes(2 * static_cast<std::size_t>(keys()) + static_cast<std::size_t>(kept_queries * (depth + 2)),
                         4);
  }
  std::size_t fast() const {
    return scratch_bytes(
        queries() + probabilities() + query_block * (depth + block_keys + 2) + dropout_words(block_keys), 6);
  }
  KOKKOS_INLINE_FUNCTION ForwardScratch<Operand> take_from(const Team& team) const {
    ForwardScratch<Operand> scratch{.keys = take<Operand>(team, 1, keys()),
                                    .values = take<Operand>(team, 1, keys()),
                                    .query = take<Operand>(team, fast_level, queries()),
                                    .probabilities = nullptr,
                                    .scores = take(team, fast_level, query_block * block_keys),
                                    .sums = take(team, fast_level, query_block * depth),
                                    .draws = take(team, fast_level, dropout_words(block_keys)),
                                    .rows = take<RunningRow>(team, fast_level, query_block),
                                    .kept_sums = nullptr,
                                    .kept_rows = nullptr};
    if (kept_queries > 0) {
      scratch.kept_sums = take(team, 1, kept_queries * depth);
      scratch.kept_rows = take<RunningRow>(team, 1, kept_queries);
    }
    if constexpr (in_place) {
      scratch.probabilities = scratch.scores;
    } else {
      scratch.probabilities = take<Operand>(team, fast_level, probabilities());
    }
    return scratch;
  }
};

/// Returns the maximum of x[0, padded) and `start`.
KOKKOS_INLINE_FUNCTION float largest(float start, int padded, const float* x) {
  float lane[lanes];
  for (int j = 0; j < lanes; ++j) lane[j] = start;
  for (int k = 0; k < padded; k += lanes) {
    for (int j = 0; j < lanes; ++j) lane[j] = lane[j] < x[k + j] ? x[k + j] : lane[j];
  }
  return fold(lane, [](float a, float b) { return a < b ? b : a; });
}

/// to[0, padded) = 2^(scale x - maximum), or 0 for elements dropped by dropout. Returns the sum of all exponentials,
/// dropped ones included. `draws` may be null if nothing is dropped. `to` may alias x.
template <bool drops, class Operand>
KOKKOS_INLINE_FUNCTION float exponentials(float scale, float maximum, int padded, const std::uint32_t* draws,
                                          std::uint32_t threshold, const float* x, Operand* to) {
  float lane[lanes] = {};
  for (int k = 0; k < padded; k += lanes) {
    MYLOS_INDEPENDENT
    for (int j = 0; j < lanes; ++j) {
      const float value = exp2_approximate(x[k + j] * scale - maximum);
      lane[j] += value;
      if constexpr (drops) {
        put(to, k + j, stored_draw(draws, k + j) >= threshold ? value : 0.0f);
      } else {
        put(to, k + j, value);
      }
    }
  }
  return fold(lane, [](float a, float b) { return a + b; });
}

/// The position of a team: the queries [begin, end) of a sequence and the keys [first_key, + keys) of a tile.
struct ForwardPosition {
  std::size_t sequence, head, first;  ///< first: row in the batch
  int length, begin, end;
  int first_key, keys, stride;  ///< stride: keys, padded
};

template <class T, class Operand>
struct Forward {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout;
  ConstMatrix<T> qkv;
  Matrix<T> out;
  Matrix<float> log_sum_exp;
  QueryParts parts;
  ForwardSizes<Operand> sizes;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    // In a causal sequence the last part has the most work, so it starts first.
    const int part = parts.parts - 1 - team.league_rank() % parts.parts;
    const std::size_t index = team.league_rank() / parts.parts, sequence = index / shape.heads;
    const std::size_t first = sequences.starts(sequence);
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first), begin = part * parts.side;
    if (begin >= length) return;
    const int end = at_most(length, begin + parts.side), visible = shape.causal ? end : length;
    const ForwardScratch<Operand> scratch = sizes.take_from(team);
    [[maybe_unused]] const std::conditional_t<(inner_of<Operand> > 1), PairTileScope, int> tiles{};
    for (int key = first_key_of_blocks(shape, begin, parts.side); key < visible; key += parts.side) {
      const int keys = at_most(visible - key, parts.side);
      const ForwardPosition position{sequence, index % shape.heads,  first, length, begin, end, key,
                                     keys,     round_up(keys, lanes)};
      team.team_barrier();  // the previous keys have been read
      load_keys(team, scratch, position);
      for (int query = begin; query < end; query += query_block) attend(team, scratch, position, query);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void load_keys(const Team& team, const ForwardScratch<Operand>& scratch,
                                             const ForwardPosition& position) const {
    const std::size_t row = position.first + position.first_key, size = shape.head_size;
    const std::size_t key_head = shape.heads + position.head / (shape.heads / shape.key_value_heads);
    load_transposed(team, head_rows(qkv, row, key_head, size), position.keys, position.stride, scratch.keys);
    load_rows(team, head_rows(qkv, row, key_head + shape.key_value_heads, size), position.keys, position.stride,
              sizes.depth, scratch.values);
  }

  /// Adds a tile of keys to the sums of a block of queries. After the last tile visible to these queries the result is
  /// written; before that the sums are kept.
  KOKKOS_FORCEINLINE_FUNCTION void attend(const Team& team, const ForwardScratch<Operand>& scratch,
                                          const ForwardPosition& position, int query) const {
    const std::size_t size = shape.head_size, first = position.first + query;
    const int rows = at_most(position.end - query, query_block), depth = sizes.depth;
    const int visible = shape.causal ? query + rows : position.length, end = position.first_key + position.keys;
    const int begin = first_key_of_blocks(shape, query, lanes);
    if (begin >= end) return;
    team.team_barrier();  // the previous block has been stored
    load_columns(team, head_rows(qkv, first, position.head, size), rows, round_up(rows, query_padding<Operand>),
                 depth / inner_of<Operand>, scratch.query);
    if (position.first_key > begin) restore(team, scratch, query - position.begin, rows);
    for (int key = at_least(position.first_key, begin); key < at_most(visible, end); key += key_block) {
      const DropoutPosition draws{sequences.sample_ids(position.sequence), static_cast<std::uint32_t>(position.head),
                                  query, key};
      add_key_block(team, scratch, position, draws, rows, at_most(at_most(visible, end) - key, key_block),
                    key == begin);
    }
    team.team_barrier();
    if (end < visible) return keep(team, scratch, query - position.begin, rows);
    const float kept = dropout.active() ? dropout.scale() : 1.0f;
    store(
        team, scratch.sums, rows, depth, [&](int row) { return kept / scratch.rows[row].sum; },
        head_rows(out, first, position.head, size));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      log_sum_exp(position.head, first + row) =
          scratch.rows[row].maximum * shape.scale + Kokkos::log(scratch.rows[row].sum);
    });
  }

  KOKKOS_INLINE_FUNCTION void keep(const Team& team, const ForwardScratch<Operand>& scratch, int first,
                                   int rows) const {
    const int depth = sizes.depth;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      scratch.kept_rows[first + row] = scratch.rows[row];
      for (int d = 0; d < depth; ++d) scratch.kept_sums[(first + row) * depth + d] = scratch.sums[row * depth + d];
    });
  }

  KOKKOS_INLINE_FUNCTION void restore(const Team& team, const ForwardScratch<Operand>& scratch, int first,
                                      int rows) const {
    const int depth = sizes.depth;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      scratch.rows[row] = scratch.kept_rows[first + row];
      for (int d = 0; d < depth; ++d) scratch.sums[row * depth + d] = scratch.kept_sums[(first + row) * depth + d];
    });
  }

  /// Adds the keys [block.first_key, + keys) to the sums of a block of queries, or begins them with these keys.
  KOKKOS_INLINE_FUNCTION void add_key_block(const Team& team, const ForwardScratch<Operand>& scratch,
                                            const ForwardPosition& position, const DropoutPosition& block, int rows,
                                            int keys, bool begins) const {
    constexpr int inner = inner_of<Operand>;
    const int depth = sizes.depth, size = static_cast<int>(shape.head_size), padded = round_up(keys, lanes);
    const int key = block.first_key - position.first_key;
    const Block<float> scores{scratch.scores, padded}, sums{scratch.sums, depth};
    team.team_barrier();
    DropoutBlock draws{};
    if (dropout.active()) draws = draw_block(team, dropout, block, rows, keys, scratch.draws);
    product<Operand>(team, rows, keys, size, {scratch.query, depth / inner, 1}, panels_of(scratch.keys, size, key),
                     false, scores);
    team.team_barrier();
    const float scale = shape.scale * log2_e;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      float* x = scores.data + row * padded;
      const int query = block.first_query + row, before = query + 1 - block.first_key;
      hide_keys(shape.mask().first_key(query) - block.first_key, shape.causal && before < keys ? before : keys, padded,
                x);
      const RunningRow before_block = begins ? RunningRow{hidden_score, 0.0f} : scratch.rows[row];
      const float maximum = largest(before_block.maximum, padded, x);
      Operand* const to = scratch.probabilities + row * (padded / inner);
      const float sum = dropout.active()
                            ? exponentials<true>(scale, maximum * scale, padded, draws.row(row), draws.threshold, x, to)
                            : exponentials<false>(scale, maximum * scale, padded, nullptr, 0, x, to);
      const float correction = exp2_approximate((before_block.maximum - maximum) * scale);
      scratch.rows[row] = {maximum, before_block.sum * correction + sum};
      if (begins) return;
      for (int d = 0; d < depth; ++d) sums.data[row * depth + d] *= correction;
    });
    team.team_barrier();
    product<Operand>(team, rows, depth, keys, {scratch.probabilities, padded / inner, 1},
                     rows_of(scratch.values + key / inner * depth, depth), !begins, sums);
  }
};

template <class T, class Operand>
void launch_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                    const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                    const Matrix<float>& log_sum_exp) {
  const QueryParts parts = query_parts(sequences.longest);
  ForwardSizes<Operand> sizes(parts, static_cast<int>(shape.head_size));
  Policy policy = make_policy(space, sequences.sample_ids.size() * shape.heads * static_cast<std::size_t>(parts.parts));
  set_scratch(policy, sizes);
  Kokkos::parallel_for(with_work("mylos::Attention::forward", forward_work(shape, sequences, sizeof(T))),
                       with_functor_as_argument(policy),
                       Forward<T, Operand>{shape, sequences, dropout, qkv, out, log_sum_exp, parts, sizes});
}

}  // namespace
}  // namespace attention

template <class T>
void attention_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                       const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                       const Matrix<float>& log_sum_exp) {
  attention::check_shapes(shape, sequences, qkv.extent(0), qkv.extent(1), out.extent(1));
  const std::string obstacle = attention_obstacle(shape.kernel, precision_of<T>, shape.head_size);
  require(obstacle.empty(), "attention: " + obstacle);
  if constexpr (precision_of<T> != Precision::float32) {
    if (shape.kernel == AttentionKernel::tensor_cores) {
      return attention::tensor_core_forward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
    }
    if (shape.kernel == AttentionKernel::cudnn) {
      return attention::cudnn_forward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
    }
  }
  if constexpr (std::is_same_v<T, bfloat16> && attention::multiplies_pairs) {
    if (attention::bfloat16_operands() != attention::Bfloat16Operands::floats) {
      return attention::launch_forward<T, attention::Pair>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
    }
  }
  if constexpr (std::is_same_v<T, float> && attention::computes_in_lanes) {
    if (attention::fits_lanes(shape.head_size)) {
      return attention::forward_in_lanes(space, shape, sequences, dropout, qkv, out, log_sum_exp);
    }
  }
  attention::launch_forward<T, float>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
}

template <class T>
void prepare_attention(const ExecutionSpace& space, const AttentionShape& shape, const BatchShapes& batches,
                       bool with_backward) {
  if (shape.kernel != AttentionKernel::cudnn) return;
  for (const BatchShape& batch : batches()) {
    attention::prepare_cudnn(space, shape, precision_of<T>, batch.samples, batch.longest, with_backward);
  }
}

template <class T>
std::size_t attention_forward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                      const TeamProcessor& processor, std::size_t dropped_rows) {
  if (shape.kernel == AttentionKernel::tensor_cores) {
    return attention::kept_pairs_bytes(shape.heads, dropped_rows, longest);
  }
  if (shape.kernel == AttentionKernel::cudnn) return attention::cudnn_forward_scratch(shape, samples, longest);
  const attention::QueryParts parts = attention::query_parts(longest);
  const std::size_t league = samples * shape.heads * static_cast<std::size_t>(parts.parts);
  if constexpr (std::is_same_v<T, float> && attention::computes_in_lanes) {
    if (processor.on_host && attention::fits_lanes(shape.head_size)) {
      return league == 0 ? 0 : processor.threads * attention::forward_scratch_in_lanes(shape.head_size, parts.side);
    }
  }
  // Pairs need no more: keys and values shrink by more than the additional blocks take.
  const attention::ForwardSizes<float> sizes(parts, static_cast<int>(shape.head_size));
  return attention::all_scratch_bytes(sizes, league, processor);
}

#define MYLOS_INSTANTIATE(T)                                                                                  \
  template void attention_forward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,    \
                                     const DropoutKey&, const ConstMatrix<T>&, const Matrix<T>&,              \
                                     const Matrix<float>&);                                                   \
  template void prepare_attention<T>(const ExecutionSpace&, const AttentionShape&, const BatchShapes&, bool); \
  template std::size_t attention_forward_scratch<T>(const AttentionShape&, std::size_t, std::size_t,          \
                                                    const TeamProcessor&, std::size_t);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
