#include "core/kernels/attention/attention_lanes_blocks.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/math.hpp"

namespace mylos::attention {
namespace {

/// Two numbers for each query, from which its scores are differentiated: its log-sum-exp times log2(e), and its row sum
/// of dout * out.
template <int width>
struct QueryLanes {
  float normalizer[width], row_sum[width];
};

struct BackwardInLanes {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout;
  ConstMatrix<float> qkv;
  ConstMatrix<float> log_sum_exp;
  ConstMatrix<float> dout;
  ConstMatrix<float> row_sums;
  Matrix<float> dqkv;  ///< also holds the sums between the tiles of a sequence
  Wave wave;

  struct Scratch {
    float *queries, *douts;             ///< (query block, head size)
    float *queries_lanes, *dout_lanes;  ///< (head size, score_stride)
    float *scores, *dscores;            ///< (keys of a block, score_stride)
    float *keys, *values;               ///< (keys of a block, copied stride)
  };
  int block_keys() const { return at_most(key_block, wave.side); }

  /// The rows of a head's keys and values in a block, and of their gradients.
  struct KeyRows {
    HeadRows<const float> keys, values;
    HeadRows<float> dkeys, dvalues;
    int first, count;

    /// Returns those of [begin, end).
    KeyRows within(int begin, int end) const {
      const int from = at_least(begin, first), skipped = from - first;
      return {rows_after(keys, skipped),
              rows_after(values, skipped),
              rows_after(dkeys, skipped),
              rows_after(dvalues, skipped),
              from,
              at_most(end, first + count) - from};
    }
  };

  void operator()(const Team& team) const {
    const int key_tile = team.league_rank() % wave.tiles;
    const std::size_t head_index = team.league_rank() / wave.tiles, sequence = head_index / shape.key_value_heads;
    const std::size_t first = sequences.starts(sequence), key_head = head_index % shape.key_value_heads;
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first);
    const int group = static_cast<int>(shape.heads / shape.key_value_heads);
    const Tile tile = wave.tile(key_tile, group, length, shape);
    if (tile.heads == 0) return;
    Scratch scratch{};
    for (float** array : {&scratch.queries, &scratch.douts, &scratch.queries_lanes, &scratch.dout_lanes}) {
      *array = take(team, 0, static_cast<int>(shape.head_size) * score_stride);
    }
    for (float** array : {&scratch.scores, &scratch.dscores}) *array = take(team, 0, block_keys() * score_stride);
    const std::size_t key_column = shape.heads + key_head, value_column = key_column + shape.key_value_heads,
                      size = shape.head_size;
    for (float** array : {&scratch.keys, &scratch.values}) *array = take(team, 0, block_keys() * copied_stride(size));
    const int first_key = key_tile * wave.side, end = at_most(length, tile.first_query + wave.side);
    for (int key = first_key, last_key = at_most(length, first_key + wave.side); key < last_key; key += key_block) {
      const std::size_t row = first + key;
      KeyRows block{head_rows(qkv, row, key_column, size),
                    head_rows(qkv, row, value_column, size),
                    head_rows(dqkv, row, key_column, size),
                    head_rows(dqkv, row, value_column, size),
                    key,
                    at_most(last_key - key, key_block)};
      const int begin = shape.causal ? at_least(tile.first_query, key) : tile.first_query,
                last = at_most(end, shape.mask().end_of_queries(key + block.count - 1, length));
      if (begin >= last) continue;
      // The first queries of a causal sequence do not add to all keys.
      bool adds = !tile.begins_keys || shape.causal;
      for (const HeadRows<float>& rows : {block.dkeys, block.dvalues}) {
        if (tile.begins_keys && shape.causal) clear(rows, block.count);
      }
      if (tile.heads > 1 || last - begin > query_block) {  // otherwise they are read once
        block.keys = copied_rows(block.keys, block.count, scratch.keys);
        block.values = copied_rows(block.values, block.count, scratch.values);
      }
      for (int head = tile.head; head < tile.head + tile.heads; ++head) {
        const SequenceHead of{sequence, key_head * group + head, first, length};
        for (int query = begin; query < last; query += query_block) {
          if (const int rows = at_most(end - query, query_block); rows > square) {
            add_queries<2 * square>(scratch, of, block, query, rows, adds);
          } else {
            add_queries<square>(scratch, of, block, query, rows, adds);
          }
          adds = true;
        }
      }
    }
  }

  static void clear(const HeadRows<float>& to, int rows) {
    for (int row = 0; row < rows; ++row) {
      float* const x = to.data + static_cast<std::size_t>(row) * to.stride;
      for (int d = 0; d < to.head_size; ++d) x[d] = 0.0f;
    }
  }

  /// Adds a block of queries to the gradients of a block's keys and values, or sets them unless `adds_to_keys`; and the
  /// block's keys to the gradient of these queries, or sets it if they are the first.
  template <int width>
  void add_queries(const Scratch& scratch, const SequenceHead& of, const KeyRows& keys, int query, int rows,
                   bool adds_to_keys) const {
    const std::size_t size = shape.head_size, row = of.first + query;
    const auto queries = head_rows(qkv, row, of.head, size), douts = head_rows(dout, row, of.head, size);
    const HeadRows<float> dqueries = head_rows(dqkv, row, of.head, size);
    copy(queries, rows, {scratch.queries, size, queries.head_size});
    copy(douts, rows, {scratch.douts, size, douts.head_size});
    transpose<width>(queries, rows, scratch.queries_lanes);
    transpose<width>(douts, rows, scratch.dout_lanes);
    QueryLanes<width> lanes;
    for (int j = 0; j < width; ++j) {  // lanes beyond the last row are computed but not read
      lanes.normalizer[j] = j < rows ? log_sum_exp(of.head, row + j) * log2_e : 0.0f;
      lanes.row_sum[j] = j < rows ? row_sums(of.head, row + j) : 0.0f;
    }
    const int first_seen = first_key_of_blocks(shape, query, drawn_keys);
    const KeyRows visible = keys.within(first_seen, shape.causal ? query + rows : of.length);
    const DropoutPosition block{sequences.sample_ids(of.sequence), static_cast<std::uint32_t>(of.head), query,
                                visible.first};
    add_keys(scratch, block, lanes, visible, rows, adds_to_keys);
    multiply(rows, queries.head_size, visible.count, by_query(scratch.dscores), block_of(visible.keys),
             visible.first > first_seen, block_of(dqueries));
  }

  /// Computes the gradients of a block of scores, and adds to those of its keys and values or sets them.
  template <int width>
  void add_keys(const Scratch& scratch, const DropoutPosition& block, const QueryLanes<width>& lanes,
                const KeyRows& keys, int rows, bool adds) const {
    const int count = keys.count, size = static_cast<int>(shape.head_size);
    multiply(count, width, size, left_of(keys.keys), {scratch.queries_lanes, score_stride}, false,
             {scratch.scores, score_stride});
    multiply(count, width, size, left_of(keys.values), {scratch.dout_lanes, score_stride}, false,
             {scratch.dscores, score_stride});
    hide_keys<width>(shape, block, count, scratch.scores);
    if (dropout.active()) {
      differentiate<true, width>(scratch, block, lanes, count);
    } else {
      differentiate<false, width>(scratch, block, lanes, count);
    }
    multiply(count, size, rows, by_key(scratch.scores), {scratch.douts, size}, adds, block_of(keys.dvalues));
    multiply(count, size, rows, by_key(scratch.dscores), {scratch.queries, size}, adds, block_of(keys.dkeys));
  }

  /// scores = P M, dscores = scale dS (attention_backward.cpp).
  template <bool drops, int width>
  void differentiate(const Scratch& scratch, const DropoutPosition& block, const QueryLanes<width>& lanes,
                     int keys) const {
    const float scale = shape.scale, exponent_scale = shape.scale * log2_e, kept_factor = dropout.scale();
    for_keys<drops, width>(keys, dropout, block, [&](int k, const DrawnKeys<width>& kept, int i) {
      float* const x = scratch.scores + k * score_stride;
      float* const dx = scratch.dscores + k * score_stride;
      for_lanes<width>([&](int j) {
        const float probability = exp2_approximate(x[j] * exponent_scale - lanes.normalizer[j]);
        const float factor = !drops ? 1.0f : kept.keeps(i, j) ? kept_factor : 0.0f;
        x[j] = probability * factor;
        dx[j] = (probability * scale) * (factor * dx[j] - lanes.row_sum[j]);
      });
    });
  }
};

}  // namespace

std::size_t backward_scratch_in_lanes(std::size_t head_size, int side) {
  const std::size_t keys = at_most(key_block, side);
  return scratch_bytes((4 * head_size + 2 * keys) * score_stride + 2 * keys * copied_stride(head_size), 8);
}

void backward_in_lanes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                       const DropoutKey& dropout, const ConstMatrix<float>& qkv, const ConstMatrix<float>& log_sum_exp,
                       const ConstMatrix<float>& dout, const ConstMatrix<float>& row_sums, const Matrix<float>& dqkv) {
  const BackwardInLanes backward{
      shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv, first_wave(sequences.longest, true)};
  const std::size_t league =
      sequences.sample_ids.size() * shape.key_value_heads * static_cast<std::size_t>(backward.wave.tiles);
  launch_waves(policy_of(space, league, backward_scratch_in_lanes(shape.head_size, backward.wave.side)), backward,
               backward_work(shape, sequences, sizeof(float)));
}

}  // namespace mylos::attention
