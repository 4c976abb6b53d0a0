#include "core/kernels/attention_lanes.hpp"

#include "core/base/error.hpp"
#include "core/kernels/attention_blocks.hpp"
#include "core/kernels/attention_tiles.hpp"
#include "core/kernels/attention_work.hpp"
#include "core/kernels/math.hpp"

/// A team of one thread takes a head of a sequence, or a part of it if the sequence is long (attention_tiles.hpp). It
/// loops over blocks of queries, and for each over blocks of keys.
namespace mylos::attention {
#if defined(MYLOS_DEVICE_BUILD)
bool queries_in_lanes(std::size_t) { return false; }
void forward_in_lanes(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, const DropoutKey&,
                      const ConstMatrix<float>&, const Matrix<float>&, const Matrix<float>&) {}
void backward_in_lanes(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, const DropoutKey&,
                       const ConstMatrix<float>&, const ConstMatrix<float>&, const ConstMatrix<float>&,
                       const ConstMatrix<float>&, const Matrix<float>&) {}
#else
namespace {

/// Floats from one key's scores to the next key's. The last block of a sequence uses half of the lanes if they suffice.
inline constexpr int score_stride = query_block;
static_assert(score_stride % (2 * square) == 0 && square % (tile_columns / 2) == 0);

/// Keys whose dropout is drawn at a time.
inline constexpr int drawn_keys = static_cast<int>(dropout_group);

/// Calls body(j) for each lane.
template <int width, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_lanes(const Body& body) {
  MYLOS_ROLLED
  MYLOS_INDEPENDENT
  for (int j = 0; j < width; ++j) body(j);
}

/// Computes the columns [column, + width) of `multiply`, `height` rows at a time, then the rest with half as many.
template <int width, int height = tile_rows>
void multiply_rows(int rows, int inner, const Left<float>& a, const Block<const float>& b, bool accumulate,
                   const Block<float>& c) {
  int row = 0;
  for (; row + height <= rows; row += height) {
    tile_product<width, height>(inner, {a.data + row * a.row_stride, a.row_stride, a.inner_stride}, b, accumulate,
                                {c.data + row * c.stride, c.stride});
  }
  if constexpr (height > 1) {
    if (row == rows) return;
    multiply_rows<width, height / 2>(rows - row, inner, {a.data + row * a.row_stride, a.row_stride, a.inner_stride}, b,
                                     accumulate, {c.data + row * c.stride, c.stride});
  }
}

/// c (rows, columns) = or += a (rows, inner) b (inner, columns). Nothing beyond these is read or written. `columns`
/// must be a multiple of half of `tile_columns`.
void multiply(int rows, int columns, int inner, const Left<float>& a, const Block<const float>& b, bool accumulate,
              const Block<float>& c) {
  int column = 0;
  for (; column + tile_columns <= columns; column += tile_columns) {
    multiply_rows<tile_columns>(rows, inner, a, {b.data + column, b.stride}, accumulate, {c.data + column, c.stride});
  }
  if (column == columns) return;
  multiply_rows<tile_columns / 2>(rows, inner, a, {b.data + column, b.stride}, accumulate, {c.data + column, c.stride});
}

/// The rows of a head as operands and results of products. A row of a batch has fewer floats than the largest int.
Block<const float> block_of(const HeadRows<const float>& rows) { return {rows.data, static_cast<int>(rows.stride)}; }
Block<float> block_of(const HeadRows<float>& rows) { return {rows.data, static_cast<int>(rows.stride)}; }
Left<float> left_of(const HeadRows<const float>& rows) { return {rows.data, static_cast<int>(rows.stride), 1}; }

/// Scores as the left operand of a product whose rows are queries, and of one whose rows are keys.
Left<float> by_query(const float* scores) { return {scores, 1, score_stride}; }
Left<float> by_key(const float* scores) { return {scores, score_stride, 1}; }

template <class T>
HeadRows<T> rows_after(const HeadRows<T>& rows, int count) {
  return {rows.data + static_cast<std::size_t>(count) * rows.stride, rows.stride, rows.head_size};
}

/// to (head size, score_stride) = transpose of from (rows, head size); lanes beyond `rows` are zero.
template <int width>
void transpose(const HeadRows<const float>& from, int rows, float* to) {
  for (int row = 0; row < width; row += square) {
    for (int d = 0; d < from.head_size; d += square) {
      load_square(from.data + static_cast<std::size_t>(row < rows ? row : 0) * from.stride + d, from.stride, rows - row,
                  square, to + d * score_stride + row, score_stride);
    }
  }
}

/// Dropout's draws for `drawn_keys` keys and the queries of a block.
template <int width>
struct DrawnKeys {
  std::uint32_t words[drawn_keys / 2][width];
  std::uint32_t threshold;

  /// Draws for the keys from `first_key`, a multiple of `drawn_keys`.
  void draw(const DropoutKey& key, const DropoutPosition& position, int first_key) {
    DrawLanes<width> x;
    for (int j = 0; j < width; ++j) {
      x.set(j, key, position.sample, static_cast<std::uint32_t>(position.first_query + j), position.head,
            static_cast<std::uint32_t>(first_key / drawn_keys));
    }
    x.draw(key.philox_key());
    for (int w = 0; w < drawn_keys / 2; ++w) {
      for_lanes<width>([&](int j) { words[w][j] = static_cast<std::uint32_t>(x.word[w][j]); });
    }
    threshold = key.threshold();
  }

  /// Whether the score of key `i` is kept for lane `j`.
  bool keeps(int i, int j) const {
    const std::uint32_t draw = i % 2 == 0 ? words[i / 2][j] & 0xffffu : words[i / 2][j] >> 16;
    return draw >= threshold;
  }
};

/// Calls body(k, kept, i) for the keys k of a block, whose dropout is the i-th of `kept`.
template <bool drops, int width, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_keys(int keys, const DropoutKey& dropout, const DropoutPosition& block,
                                          const Body& body) {
  DrawnKeys<width> kept;
  for (int k = 0; k < keys; k += drawn_keys) {
    if constexpr (drops) kept.draw(dropout, block, block.first_key + k);
    const int end = at_most(drawn_keys, keys - k);
    for (int i = 0; i < end; ++i) body(k + i, kept, i);
  }
}

/// Masks the keys that come after a query.
template <int width>
void hide_later_keys(const DropoutPosition& block, int keys, float* scores) {
  const int first = block.first_query + 1 - block.first_key;
  for (int k = first > 0 ? first : 0; k < keys; ++k) {
    const int hidden = at_most(block.first_key + k - block.first_query, width);
    for (int j = 0; j < hidden; ++j) scores[k * score_stride + j] = -Kokkos::Experimental::infinity_v<float>;
  }
}

/// The state of a block of queries after some blocks of keys; the maximum is of unscaled q k^T.
template <int width>
struct RunningLanes {
  float maximum[width], sum[width];
};

/// Raises the maxima to those of `keys` rows of scores.
template <int width>
void raise_maxima(int keys, const float* scores, float (&maximum)[width]) {
  constexpr int at_once = 4;  // a maximum waits for the one before
  float lane[at_once][width];
  for (int i = 0; i < at_once; ++i) for_lanes<width>([&](int j) { lane[i][j] = maximum[j]; });
  const auto larger = [](float a, float b) { return a < b ? b : a; };
  int k = 0;
  for (; k + at_once <= keys; k += at_once) {
    for (int i = 0; i < at_once; ++i) {
      const float* const x = scores + (k + i) * score_stride;
      for_lanes<width>([&](int j) { lane[i][j] = larger(lane[i][j], x[j]); });
    }
  }
  for (; k < keys; ++k) for_lanes<width>([&](int j) { lane[0][j] = larger(lane[0][j], scores[k * score_stride + j]); });
  for_lanes<width>([&](int j) { maximum[j] = larger(larger(lane[0][j], lane[1][j]), larger(lane[2][j], lane[3][j])); });
}

/// A query head of a sequence; `first` is the sequence's first row in the batch.
struct SequenceHead {
  std::size_t sequence, head, first;
  int length;
};

struct ForwardInLanes {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout;
  ConstMatrix<float> qkv;
  Matrix<float> out;
  Matrix<float> log_sum_exp;
  QueryParts parts;

  struct Scratch {
    float *queries, *scores;  ///< (head size, score_stride), (keys of a block, score_stride)
  };
  int block_keys() const { return at_most(key_block, parts.side); }
  std::size_t scratch() const { return scratch_bytes((shape.head_size + block_keys()) * score_stride, 2); }

  void operator()(const Team& team) const {
    // In a causal sequence the last part has the most work, so it starts first.
    const int part = parts.parts - 1 - team.league_rank() % parts.parts;
    const std::size_t index = team.league_rank() / parts.parts, sequence = index / shape.heads;
    const std::size_t first = sequences.starts(sequence);
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first), begin = part * parts.side;
    const Scratch scratch{take(team, 0, static_cast<int>(shape.head_size) * score_stride),
                          take(team, 0, block_keys() * score_stride)};
    const SequenceHead head{sequence, index % shape.heads, first, length};
    const int end = at_most(length, begin + parts.side);
    for (int query = begin; query < end; query += query_block) {
      const int rows = at_most(end - query, query_block);
      rows > square ? attend<2 * square>(scratch, head, query, rows) : attend<square>(scratch, head, query, rows);
    }
  }

  template <int width>
  void attend(const Scratch& scratch, const SequenceHead& of, int query, int rows) const {
    const std::size_t size = shape.head_size, row = of.first + query;
    const std::size_t key_head = shape.heads + of.head / (shape.heads / shape.key_value_heads);
    const auto keys = head_rows(qkv, of.first, key_head, size),
               values = head_rows(qkv, of.first, key_head + shape.key_value_heads, size);
    const HeadRows<float> result = head_rows(out, row, of.head, size);
    transpose<width>(head_rows(qkv, row, of.head, size), rows, scratch.queries);
    const int visible = shape.causal ? query + rows : of.length;
    RunningLanes<width> running;
    for_lanes<width>([&](int j) {
      running.maximum[j] = -Kokkos::Experimental::infinity_v<float>;
      running.sum[j] = 0.0f;
    });
    for (int key = 0; key < visible; key += key_block) {
      const DropoutPosition block{sequences.sample_ids(of.sequence), static_cast<std::uint32_t>(of.head), query, key};
      add_keys(scratch, block, rows, at_most(visible - key, key_block), rows_after(keys, key), rows_after(values, key),
               result, running);
    }
    const float kept = dropout.active() ? dropout.scale() : 1.0f;
    scale_rows(result, rows, [&](int j) { return kept / running.sum[j]; });
    for (int j = 0; j < rows; ++j) {
      log_sum_exp(of.head, row + j) = running.maximum[j] * shape.scale + Kokkos::log(running.sum[j]);
    }
  }

  template <class Scale>
  static void scale_rows(const HeadRows<float>& result, int rows, const Scale& scale) {
    for (int j = 0; j < rows; ++j) {
      const float factor = scale(j);
      float* const x = result.data + static_cast<std::size_t>(j) * result.stride;
      for (int d = 0; d < result.head_size; d += square) for_lanes<square>([&](int i) { x[d + i] *= factor; });
    }
  }

  /// Adds a block of keys to the sums of a block of queries.
  template <int width>
  void add_keys(const Scratch& scratch, const DropoutPosition& block, int rows, int count,
                const HeadRows<const float>& keys, const HeadRows<const float>& values, const HeadRows<float>& result,
                RunningLanes<width>& running) const {
    float* const scores = scratch.scores;
    multiply(count, width, keys.head_size, left_of(keys), {scratch.queries, score_stride}, false,
             {scores, score_stride});
    if (shape.causal) hide_later_keys<width>(block, count, scores);
    const float scale = shape.scale * log2_e;
    const RunningLanes<width> before = running;
    raise_maxima<width>(count, scores, running.maximum);
    if (block.first_key > 0) {
      float correction[width];
      for_lanes<width>([&](int j) {
        correction[j] = exp2_approximate((before.maximum[j] - running.maximum[j]) * scale);
        running.sum[j] *= correction[j];
      });
      scale_rows(result, rows, [&](int j) { return correction[j]; });
    }
    if (dropout.active()) {
      exponentials<true, width>(block, count, scale, scores, running);
    } else {
      exponentials<false, width>(block, count, scale, scores, running);
    }
    multiply(rows, values.head_size, count, by_query(scores), block_of(values), block.first_key > 0, block_of(result));
  }

  /// scores = 2^(scale scores - scale maximum), or 0 where dropout drops them, and adds the exponentials to the sums.
  template <bool drops, int width>
  void exponentials(const DropoutPosition& block, int keys, float scale, float* scores,
                    RunningLanes<width>& running) const {
    float maximum[width], sum[width];
    for_lanes<width>([&](int j) {
      maximum[j] = running.maximum[j] * scale;
      sum[j] = running.sum[j];
    });
    for_keys<drops, width>(keys, dropout, block, [&](int k, const DrawnKeys<width>& kept, int i) {
      float* const x = scores + k * score_stride;
      for_lanes<width>([&](int j) {
        const float value = exp2_approximate(x[j] * scale - maximum[j]);
        sum[j] += value;
        x[j] = !drops || kept.keeps(i, j) ? value : 0.0f;
      });
    });
    for_lanes<width>([&](int j) { running.sum[j] = sum[j]; });
  }
};

/// What the gradients of scores need of each query: log-sum-exp in powers of two, and the row sum of dout * out.
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
  };
  int block_keys() const { return at_most(key_block, wave.side); }
  std::size_t scratch() const { return scratch_bytes((4 * shape.head_size + 2 * block_keys()) * score_stride, 6); }

  /// The rows of a head's keys and values in a tile, and of their gradients.
  struct KeyRows {
    HeadRows<const float> keys, values;
    HeadRows<float> dkeys, dvalues;
    int first, count;
  };

  void operator()(const Team& team) const {
    const int key_tile = team.league_rank() % wave.tiles;
    const std::size_t head_index = team.league_rank() / wave.tiles, sequence = head_index / shape.key_value_heads;
    const std::size_t first = sequences.starts(sequence), key_head = head_index % shape.key_value_heads;
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first);
    const int group = static_cast<int>(shape.heads / shape.key_value_heads);
    const Tile tile = wave.tile(key_tile, group, length, shape.causal);
    if (tile.heads == 0) return;
    Scratch scratch{};
    for (float** array : {&scratch.queries, &scratch.douts, &scratch.queries_lanes, &scratch.dout_lanes}) {
      *array = take(team, 0, static_cast<int>(shape.head_size) * score_stride);
    }
    for (float** array : {&scratch.scores, &scratch.dscores}) *array = take(team, 0, block_keys() * score_stride);
    const int first_key = key_tile * wave.side;
    const std::size_t row = first + first_key, key_column = shape.heads + key_head,
                      value_column = key_column + shape.key_value_heads, size = shape.head_size;
    const KeyRows keys{head_rows(qkv, row, key_column, size),
                       head_rows(qkv, row, value_column, size),
                       head_rows(dqkv, row, key_column, size),
                       head_rows(dqkv, row, value_column, size),
                       first_key,
                       at_most(length - first_key, wave.side)};
    // The first queries of a causal sequence do not add to all keys.
    if (tile.begins_keys && shape.causal) {
      clear(keys.dkeys, keys.count);
      clear(keys.dvalues, keys.count);
    }
    bool adds = !tile.begins_keys || shape.causal;
    const int end = at_most(length, tile.first_query + wave.side);
    for (int head = tile.head; head < tile.head + tile.heads; ++head) {
      const SequenceHead of{sequence, key_head * group + head, first, length};
      for (int query = tile.first_query; query < end; query += query_block) {
        if (const int rows = at_most(end - query, query_block); rows > square) {
          add_queries<2 * square>(scratch, of, keys, query, rows, adds, !tile.begins_queries);
        } else {
          add_queries<square>(scratch, of, keys, query, rows, adds, !tile.begins_queries);
        }
        adds = true;
      }
    }
  }

  static void clear(const HeadRows<float>& to, int rows) {
    for (int row = 0; row < rows; ++row) {
      float* const x = to.data + static_cast<std::size_t>(row) * to.stride;
      for (int d = 0; d < to.head_size; ++d) x[d] = 0.0f;
    }
  }

  static void copy(const HeadRows<const float>& from, int rows, float* to) {
    for (int row = 0; row < rows; ++row) {
      std::memcpy(to + row * from.head_size, from.data + static_cast<std::size_t>(row) * from.stride,
                  from.head_size * sizeof(float));
    }
  }

  /// Adds a block of queries to the gradients of a tile's keys and values, or sets them unless `adds_to_keys`; and the
  /// tile's keys to the gradient of these queries, or sets it unless `adds_to_queries`.
  template <int width>
  void add_queries(const Scratch& scratch, const SequenceHead& of, const KeyRows& keys, int query, int rows,
                   bool adds_to_keys, bool adds_to_queries) const {
    const std::size_t size = shape.head_size, row = of.first + query;
    const auto queries = head_rows(qkv, row, of.head, size), douts = head_rows(dout, row, of.head, size);
    const HeadRows<float> dqueries = head_rows(dqkv, row, of.head, size);
    copy(queries, rows, scratch.queries);
    copy(douts, rows, scratch.douts);
    transpose<width>({scratch.queries, size, queries.head_size}, rows, scratch.queries_lanes);
    transpose<width>({scratch.douts, size, queries.head_size}, rows, scratch.dout_lanes);
    QueryLanes<width> lanes;
    for (int j = 0; j < width; ++j) {  // lanes beyond the last row are computed but not read
      lanes.normalizer[j] = j < rows ? log_sum_exp(of.head, row + j) * log2_e : 0.0f;
      lanes.row_sum[j] = j < rows ? row_sums(of.head, row + j) : 0.0f;
    }
    const int end = keys.first + keys.count, visible = shape.causal ? at_most(query + rows, end) : end;
    for (int key = keys.first; key < visible; key += key_block) {
      const DropoutPosition block{sequences.sample_ids(of.sequence), static_cast<std::uint32_t>(of.head), query, key};
      const int past = key - keys.first;
      const KeyRows part{rows_after(keys.keys, past),
                         rows_after(keys.values, past),
                         rows_after(keys.dkeys, past),
                         rows_after(keys.dvalues, past),
                         key,
                         at_most(visible - key, key_block)};
      add_keys(scratch, block, lanes, part, rows, adds_to_keys);
      multiply(rows, queries.head_size, part.count, by_query(scratch.dscores), block_of(part.keys),
               adds_to_queries || past > 0, block_of(dqueries));
    }
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
    if (shape.causal) hide_later_keys<width>(block, count, scratch.scores);
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

Policy policy_of(const ExecutionSpace& space, std::size_t league, std::size_t scratch) {
  return Policy(space, static_cast<int>(league), 1).set_scratch_size(0, Kokkos::PerTeam(scratch));
}

}  // namespace

bool queries_in_lanes(std::size_t head_size) { return head_size % square == 0; }

void forward_in_lanes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                      const DropoutKey& dropout, const ConstMatrix<float>& qkv, const Matrix<float>& out,
                      const Matrix<float>& log_sum_exp) {
  const ForwardInLanes forward{shape, sequences, dropout, qkv, out, log_sum_exp, query_parts(sequences.longest)};
  const std::size_t league = sequences.sample_ids.size() * shape.heads * static_cast<std::size_t>(forward.parts.parts);
  Kokkos::parallel_for(with_work("mylos::Attention::forward", forward_work(shape, sequences, sizeof(float))),
                       with_functor_as_argument(policy_of(space, league, forward.scratch())), forward);
}

void backward_in_lanes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                       const DropoutKey& dropout, const ConstMatrix<float>& qkv, const ConstMatrix<float>& log_sum_exp,
                       const ConstMatrix<float>& dout, const ConstMatrix<float>& row_sums, const Matrix<float>& dqkv) {
  const BackwardInLanes backward{
      shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv, first_wave(sequences.longest, true)};
  const std::size_t league =
      sequences.sample_ids.size() * shape.key_value_heads * static_cast<std::size_t>(backward.wave.tiles);
  launch_waves(policy_of(space, league, backward.scratch()), backward, backward_work(shape, sequences, sizeof(float)));
}
#endif

}  // namespace mylos::attention
