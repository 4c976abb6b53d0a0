#include "core/kernels/attention_lanes_blocks.hpp"
#include "core/kernels/attention_work.hpp"
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
  };
  int block_keys() const { return at_most(key_block, parts.side); }

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
      if (rows > square) {
        attend<2 * square>(scratch, head, query, rows);
      } else {
        attend<square>(scratch, head, query, rows);
      }
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
  return scratch_bytes((head_size + at_most(key_block, side)) * score_stride, 2);
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
