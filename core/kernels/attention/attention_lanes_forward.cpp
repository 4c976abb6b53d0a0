#include "core/kernels/attention/attention_lanes_blocks.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/math.hpp"

namespace mylos::attention {
namespace {

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
    float *keys, *values;     ///< (keys of a block, copied stride)
    RunningLanes* running;    ///< one for each block of queries
  };
  /// A block of keys of a sequence.
  struct KeyRows {
    HeadRows<const float> keys, values;
    int first, count;

    /// Returns those of [begin, end).
    KeyRows within(int begin, int end) const {
      const int from = at_least(begin, first);
      return {rows_after(keys, from - first), rows_after(values, from - first), from,
              at_most(end, first + count) - from};
    }
  };
  int block_keys() const { return at_most(key_block, parts.side); }

  void operator()(const Team& team) const {
    // In a causal sequence the last part has the most work, so it starts first.
    const int part = parts.parts - 1 - team.league_rank() % parts.parts;
    const std::size_t index = team.league_rank() / parts.parts, sequence = index / shape.heads;
    const std::size_t first = sequences.starts(sequence), size = shape.head_size;
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first), begin = part * parts.side;
    const SequenceHead head{sequence, index % shape.heads, first, length};
    const int end = at_most(length, begin + parts.side), visible = shape.causal ? end : length;
    if (begin >= end) return;
    const int copied = block_keys() * copied_stride(size);
    const Scratch scratch{take(team, 0, static_cast<int>(size) * score_stride),
                          take(team, 0, block_keys() * score_stride), take(team, 0, copied), take(team, 0, copied),
                          take<RunningLanes>(team, 0, query_blocks(parts.side))};
    const std::size_t key_head = shape.heads + head.head / (shape.heads / shape.key_value_heads);
    int next = 0;
    for (int key = first_key_of_blocks(shape, begin, drawn_keys); key < visible; key = next) {
      next = at_most(key / key_block * key_block + key_block, visible);
      KeyRows block{head_rows(qkv, first + key, key_head, size),
                    head_rows(qkv, first + key, key_head + shape.key_value_heads, size), key, next - key};
      const int last = at_most(end, shape.mask().end_of_queries(next - 1, length));
      if (end - begin > query_block) {  // otherwise they are read once
        block.keys = copied_rows(block.keys, block.count, scratch.keys);
        block.values = copied_rows(block.values, block.count, scratch.values);
      }
      for (int query = shape.causal ? at_least(begin, key) : begin; query < last; query += query_block) {
        RunningLanes& running = scratch.running[(query - begin) / query_block];
        if (const int rows = at_most(end - query, query_block); rows > square) {
          attend<2 * square>(scratch, head, block, query, rows, running);
        } else {
          attend<square>(scratch, head, block, query, rows, running);
        }
      }
    }
  }

  /// Adds a block of keys to the sums of a block of queries, and divides these after the last one.
  template <int width>
  void attend(const Scratch& scratch, const SequenceHead& of, const KeyRows& keys, int query, int rows,
              RunningLanes& running) const {
    const std::size_t row = of.first + query;
    const HeadRows<float> result = head_rows(out, row, of.head, shape.head_size);
    transpose<width>(head_rows(qkv, row, of.head, shape.head_size), rows, scratch.queries);
    const int visible = shape.causal ? query + rows : of.length, begin = first_key_of_blocks(shape, query, drawn_keys);
    const KeyRows seen = keys.within(begin, visible);
    if (seen.first == begin) {
      for_lanes<width>([&](int j) {
        running.maximum[j] = hidden_score;
        running.sum[j] = 0.0f;
      });
    }
    const DropoutPosition block{sequences.sample_ids(of.sequence), static_cast<std::uint32_t>(of.head), query,
                                seen.first};
    add_keys<width>(scratch, block, rows, seen, seen.first > begin, result, running);
    if (visible > keys.first + keys.count) return;
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

  /// Adds keys to the sums of a block of queries, or begins them unless `adds`.
  template <int width>
  void add_keys(const Scratch& scratch, const DropoutPosition& block, int rows, const KeyRows& seen, bool adds,
                const HeadRows<float>& result, RunningLanes& running) const {
    float* const scores = scratch.scores;
    const int count = seen.count;
    multiply(count, width, seen.keys.head_size, left_of(seen.keys), {scratch.queries, score_stride}, false,
             {scores, score_stride});
    hide_keys<width>(shape, block, count, scores);
    const float scale = shape.scale * log2_e;
    const RunningLanes before = running;
    raise_maxima<width>(count, scores, running.maximum);
    if (adds) {
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
    multiply(rows, seen.values.head_size, count, by_query(scores), block_of(seen.values), adds, block_of(result));
  }

  /// scores = 2^(scale scores - scale maximum), or 0 where dropout drops them, and adds the exponentials to the sums.
  template <bool drops, int width>
  void exponentials(const DropoutPosition& block, int keys, float scale, float* scores, RunningLanes& running) const {
    float maximum[width], sum[width];
    for_lanes<width>([&](int j) {
      maximum[j] = running.maximum[j] * scale;
      sum[j] = 0.0f;
    });
    for_keys<drops, width>(keys, dropout, block, [&](int k, const DrawnKeys<width>& kept, int i) {
      float* const x = scores + k * score_stride;
      for_lanes<width>([&](int j) {
        const float value = exp2_approximate(x[j] * scale - maximum[j]);
        sum[j] += value;
        x[j] = !drops || kept.keeps(i, j) ? value : 0.0f;
      });
    });
    for_lanes<width>([&](int j) { running.sum[j] += sum[j]; });
  }
};

}  // namespace

std::size_t forward_scratch_in_lanes(std::size_t head_size, int side) {
  const std::size_t keys = at_most(key_block, side);
  return scratch_bytes((head_size + keys + 2 * query_blocks(side)) * score_stride + 2 * keys * copied_stride(head_size),
                       5);
}

void forward_in_lanes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                      const DropoutKey& dropout, const ConstMatrix<float>& qkv, const Matrix<float>& out,
                      const Matrix<float>& log_sum_exp) {
  const ForwardInLanes forward{shape, sequences, dropout, qkv, out, log_sum_exp, query_parts(sequences.longest)};
  const std::size_t league = sequences.sample_ids.size() * shape.heads * static_cast<std::size_t>(forward.parts.parts);
  Kokkos::parallel_for(
      with_work("mylos::Attention::forward", forward_work(shape, sequences, sizeof(float))),
      with_functor_as_argument(policy_of(space, league, forward_scratch_in_lanes(shape.head_size, forward.parts.side))),
      forward);
}

}  // namespace mylos::attention
