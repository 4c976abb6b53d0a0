#include "core/base/error.hpp"
#include "core/kernels/attention_blocks.hpp"
#include "core/kernels/attention_work.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/tensor_core_attention.hpp"

/// For each block of queries: scores against a block of keys, softmax with a running maximum and sum, products with the
/// values; rows are divided by their sums at the end. One block of keys holds 256, so that most sequences take one or
/// two.
namespace mylos {
namespace attention {
namespace {

/// What a query row knows after some blocks of keys: of q k^T, not yet scaled.
struct RunningRow {
  float maximum, sum;
};

/// The scratch of a team. Pairs are along columns in `keys`, `query` and `probabilities`, along rows in `values`.
template <class Operand>
struct ForwardScratch {
  Operand *keys, *values;          ///< (D, keys padded), (keys padded, depth)
  Operand *query, *probabilities;  ///< (query block, depth), (query block, key block): where `scores` are floats, there
  float *scores, *sums;            ///< (query block, key block), (query block, depth)
  float* draws;
  RunningRow* rows;  ///< (query block)
};

template <class Operand>
struct ForwardSizes : BlockSizes {
  using BlockSizes::BlockSizes;
  static constexpr bool in_place = inner_of<Operand> == 1;

  KOKKOS_INLINE_FUNCTION int keys() const { return padded_keys * depth / inner_of<Operand>; }
  KOKKOS_INLINE_FUNCTION int queries() const { return query_block * depth / inner_of<Operand>; }
  KOKKOS_INLINE_FUNCTION int probabilities() const {
    return in_place ? 0 : query_block * block_keys / inner_of<Operand>;
  }
  std::size_t large() const { return scratch_bytes(2 * static_cast<std::size_t>(keys()), 2); }
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
                                    .rows = take<RunningRow>(team, fast_level, query_block)};
    if constexpr (in_place) {
      scratch.probabilities = scratch.scores;
    } else {
      scratch.probabilities = take<Operand>(team, fast_level, probabilities());
    }
    return scratch;
  }
};

/// The largest of x[0, padded) and `start`.
KOKKOS_INLINE_FUNCTION float largest(float start, int padded, const float* x) {
  float lane[lanes];
  for (int j = 0; j < lanes; ++j) lane[j] = start;
  for (int k = 0; k < padded; k += lanes) {
    for (int j = 0; j < lanes; ++j) lane[j] = lane[j] < x[k + j] ? x[k + j] : lane[j];
  }
  return fold(lane, [](float a, float b) { return a < b ? b : a; });
}

/// to[0, padded) = 2^(scale x - maximum), where dropout keeps it: every element counts for the sum, which is returned.
/// `draws` may be null: nothing is dropped. `to` may be x.
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

template <class T>
struct Forward {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout;
  ConstMatrix<T> qkv;
  Matrix<T> out;
  Matrix<float> log_sum_exp;
  using Operand = OperandOf<T>;
  ForwardSizes<Operand> sizes;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const std::size_t sequence = team.league_rank() / shape.heads, head = team.league_rank() % shape.heads;
    const std::size_t first = sequences.starts(sequence), size = shape.head_size;
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first);
    const std::size_t key_head = shape.heads + head / (shape.heads / shape.key_value_heads);
    const int stride = round_up(length, lanes), depth = sizes.depth;
    const ForwardScratch<Operand> scratch = sizes.take_from(team);
    load_transposed(team, head_rows(qkv, first, key_head, size), length, stride, scratch.keys);
    load_rows(team, head_rows(qkv, first, key_head + shape.key_value_heads, size), length, stride, depth,
              scratch.values);
    for (int query = 0; query < length; query += query_block) {
      const int rows = length - query < query_block ? length - query : query_block;
      const int visible = shape.causal ? query + rows : length;
      team.team_barrier();  // the block before has been stored
      load_columns(team, head_rows(qkv, first + query, head, size), rows, round_up(rows, tile_rows),
                   depth / inner_of<Operand>, scratch.query);
      for (int key = 0; key < visible; key += key_block) {
        const int keys = visible - key < key_block ? visible - key : key_block;
        const DropoutPlace place{sequences.sample_ids(sequence), static_cast<std::uint32_t>(head), query, key};
        add_key_block(team, scratch, place, rows, keys, stride);
      }
      team.team_barrier();
      const float kept = dropout.active() ? dropout.scale() : 1.0f;
      store(
          team, scratch.sums, rows, depth, [&](int row) { return kept / scratch.rows[row].sum; },
          head_rows(out, first + query, head, size));
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
        log_sum_exp(head, first + query + row) =
            scratch.rows[row].maximum * shape.scale + Kokkos::log(scratch.rows[row].sum);
      });
    }
  }

  /// Takes the keys [place.first_key, + keys) into the sums of a block of queries.
  KOKKOS_INLINE_FUNCTION void add_key_block(const Team& team, const ForwardScratch<Operand>& scratch,
                                            const DropoutPlace& place, int rows, int keys, int stride) const {
    constexpr int inner = inner_of<Operand>;
    const int depth = sizes.depth, size = static_cast<int>(shape.head_size), padded = round_up(keys, lanes);
    const Block<float> scores{scratch.scores, padded}, sums{scratch.sums, depth};
    team.team_barrier();
    DropoutBlock draws{};
    if (dropout.active()) draws = draw_block(team, dropout, place, rows, keys, scratch.draws);
    product<Operand>(team, rows, keys, size, {scratch.query, depth / inner, 1},
                     {scratch.keys + place.first_key, stride}, false, scores);
    team.team_barrier();
    const bool first = place.first_key == 0;
    const float scale = shape.scale * log2_e;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      float* x = scores.data + row * padded;
      const int before = place.first_query + row + 1 - place.first_key;
      hide_keys(shape.causal && before < keys ? before : keys, padded, x);
      const RunningRow before_block =
          first ? RunningRow{-Kokkos::Experimental::infinity_v<float>, 0.0f} : scratch.rows[row];
      const float maximum = largest(before_block.maximum, padded, x);
      Operand* const to = scratch.probabilities + row * (padded / inner);
      const float sum = dropout.active()
                            ? exponentials<true>(scale, maximum * scale, padded, draws.row(row), draws.threshold, x, to)
                            : exponentials<false>(scale, maximum * scale, padded, nullptr, 0, x, to);
      const float correction = exp2_approximate((before_block.maximum - maximum) * scale);
      scratch.rows[row] = {maximum, before_block.sum * correction + sum};
      if (first) return;
      for (int d = 0; d < depth; ++d) sums.data[row * depth + d] *= correction;
    });
    team.team_barrier();
    product<Operand>(team, rows, depth, keys, {scratch.probabilities, padded / inner, 1},
                     {scratch.values + place.first_key / inner * depth, depth}, !first, sums);
  }
};

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
  }
  attention::ForwardSizes<attention::OperandOf<T>> sizes(static_cast<int>(sequences.longest),
                                                         static_cast<int>(shape.head_size));
  attention::Policy policy = attention::make_policy(space, sequences.sample_ids.size() * shape.heads);
  attention::set_scratch(policy, sizes);
  Kokkos::parallel_for(with_work("mylos::Attention::forward", attention::forward_work(shape, sequences, sizeof(T))),
                       with_functor_as_argument(policy),
                       attention::Forward<T>{shape, sequences, dropout, qkv, out, log_sum_exp, sizes});
}

std::size_t attention_forward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                      const TeamProcessor& processor) {
  if (shape.kernel == AttentionKernel::tensor_cores) return 0;
  const attention::ForwardSizes<float> sizes(static_cast<int>(longest), static_cast<int>(shape.head_size));
  return attention::all_scratch_bytes(sizes, samples * shape.heads, processor);
}

#define MYLOS_INSTANTIATE(T)                                                                               \
  template void attention_forward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, \
                                     const DropoutKey&, const ConstMatrix<T>&, const Matrix<T>&,           \
                                     const Matrix<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
