#include "core/base/error.hpp"
#include "core/kernels/attention_blocks.hpp"
#include "core/kernels/attention_work.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/tensor_core_attention.hpp"

/// With P the probabilities, M the dropout factors (0 or 1 / (1 - p)), dP = M (dout v^T) and dS = P (dP - row sum of
/// dout out): dv = (P M)^T dout, dq = scale dS k, dk = scale dS^T q. One team takes a key-value head of a sequence with
/// all query heads that share it, so that nothing is added by two teams.
namespace mylos {
namespace attention {
namespace {

/// The scratch of a team. Pairs are along the columns in what is called so and along the rows in the rest; where
/// operands are floats, both are one array, and gradients take the place of scores.
template <class Operand>
struct BackwardScratch {
  Operand *keys, *keys_transposed, *values_transposed;     ///< (keys padded, depth), (D, keys padded) twice
  float *dkeys, *dvalues;                                  ///< (keys padded, depth)
  Operand *query, *query_columns, *dout, *dout_columns;    ///< (query block, depth)
  float* dquery;                                           ///< (query block, depth)
  float *scores, *dscores;                                 ///< (query block, key block)
  Operand *probabilities, *gradients, *gradients_columns;  ///< (query block, key block)
  float* draws;
};

template <class Operand>
struct BackwardSizes : BlockSizes {
  using BlockSizes::BlockSizes;
  static constexpr bool in_place = inner_of<Operand> == 1;

  KOKKOS_INLINE_FUNCTION int keys() const { return padded_keys * depth; }
  KOKKOS_INLINE_FUNCTION int queries() const { return query_block * depth; }
  KOKKOS_INLINE_FUNCTION int block() const { return query_block * block_keys; }
  std::size_t large() const {
    return scratch_bytes(2 * static_cast<std::size_t>(keys()) + 3 * static_cast<std::size_t>(keys()) / inner, 5);
  }
  std::size_t fast() const {
    const int operands = in_place ? 2 * queries() : (4 * queries() + 3 * block()) / inner;
    return scratch_bytes(operands + queries() + 2 * block() + dropout_words(block_keys), 11);
  }
  KOKKOS_INLINE_FUNCTION BackwardScratch<Operand> take_from(const Team& team) const {
    BackwardScratch<Operand> scratch{};
    for (Operand** array : {&scratch.keys, &scratch.keys_transposed, &scratch.values_transposed}) {
      *array = take<Operand>(team, 1, keys() / inner);
    }
    for (float** array : {&scratch.dkeys, &scratch.dvalues}) *array = take(team, 1, keys());
    for (Operand** array : {&scratch.query, &scratch.dout}) *array = take<Operand>(team, fast_level, queries() / inner);
    scratch.dquery = take(team, fast_level, queries());
    for (float** array : {&scratch.scores, &scratch.dscores}) *array = take(team, fast_level, block());
    scratch.draws = take(team, fast_level, dropout_words(block_keys));
    if constexpr (in_place) {
      scratch.query_columns = scratch.query;
      scratch.dout_columns = scratch.dout;
      scratch.probabilities = scratch.scores;
      scratch.gradients = scratch.gradients_columns = scratch.dscores;
    } else {
      for (Operand** array : {&scratch.query_columns, &scratch.dout_columns}) {
        *array = take<Operand>(team, fast_level, queries() / inner);
      }
      for (Operand** array : {&scratch.probabilities, &scratch.gradients, &scratch.gradients_columns}) {
        *array = take<Operand>(team, fast_level, block() / inner);
      }
    }
    return scratch;
  }

 private:
  static constexpr int inner = inner_of<Operand>;
};

/// row_sums (A, T) = sum over a head's columns of dout * out.
template <class T>
struct RowSums {
  std::size_t heads, head_size;
  ConstMatrix<T> out, dout;
  Matrix<float> row_sums;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t row) const {
    for (std::size_t head = 0; head < heads; ++head) {
      const T* KOKKOS_RESTRICT x = out.data() + row * out.stride(0) + head * head_size;
      const T* KOKKOS_RESTRICT dx = dout.data() + row * dout.stride(0) + head * head_size;
      float lane[lanes] = {};
      const std::size_t whole = head_size / lanes * lanes;
      for (std::size_t d = 0; d < whole; d += lanes) {
        for (std::size_t j = 0; j < lanes; ++j) lane[j] += static_cast<float>(x[d + j]) * static_cast<float>(dx[d + j]);
      }
      for (std::size_t j = 0; j < head_size - whole; ++j) {
        lane[j] += static_cast<float>(x[whole + j]) * static_cast<float>(dx[whole + j]);
      }
      row_sums(head, row) = fold(lane, [](float a, float b) { return a + b; });
    }
  }
};

/// Where a team works.
struct Place {
  std::size_t sequence, first, key_head;
  int length, stride;  ///< rows of the sequence, as they are and padded
};

/// A row of scores and of dout v^T, and what they are compared with.
struct ScoreRow {
  const float *x, *dx;
  const std::uint32_t* draws;  ///< of dropout, if any
  float normalizer, row_sum;
};

/// What is the same for all rows.
struct ScoreRule {
  float scale;
  std::uint32_t threshold;
  float kept;  ///< what kept probabilities are multiplied by
};

struct ScoreGradient {
  float probability, dscore;  ///< P M and dS
};

template <bool drops>
KOKKOS_FORCEINLINE_FUNCTION ScoreGradient differentiate(const ScoreRule& rule, const ScoreRow& row, int k) {
  const float probability = exp2_approximate(row.x[k] * rule.scale - row.normalizer);
  if constexpr (!drops) return {probability, probability * (row.dx[k] - row.row_sum)};
  const float factor = stored_draw(row.draws, k) >= rule.threshold ? rule.kept : 0.0f;
  return {probability * factor, probability * (factor * row.dx[k] - row.row_sum)};
}

/// Differentiates a row in place.
template <bool drops>
KOKKOS_INLINE_FUNCTION void differentiate_row(const ScoreRule& rule, const ScoreRow& row, int padded, float* x,
                                              float* dx) {
  MYLOS_INDEPENDENT
  for (int k = 0; k < padded; ++k) {
    const ScoreGradient at = differentiate<drops>(rule, row, k);
    x[k] = at.probability;
    dx[k] = at.dscore;
  }
}

/// Differentiates two rows into pairs: of the rows, and of each row's columns.
template <bool drops>
KOKKOS_INLINE_FUNCTION void differentiate_rows(const ScoreRule& rule, const ScoreRow& first, const ScoreRow& second,
                                               int padded, Pair* probabilities, Pair* gradients, Pair* columns) {
  Pair* const second_columns = columns + padded / 2;
  MYLOS_INDEPENDENT
  for (int k = 0; k < padded; ++k) {
    const ScoreGradient one = differentiate<drops>(rule, first, k), other = differentiate<drops>(rule, second, k);
    probabilities[k] = pair_of(one.probability, other.probability);
    gradients[k] = pair_of(one.dscore, other.dscore);
    put(columns, k, one.dscore);
    put(second_columns, k, other.dscore);
  }
}

template <class T>
struct Backward {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout;
  ConstMatrix<T> qkv;
  ConstMatrix<float> log_sum_exp;
  ConstMatrix<T> dout;
  ConstMatrix<float> row_sums;
  Matrix<T> dqkv;
  using Operand = OperandOf<T>;
  using Scratch = BackwardScratch<Operand>;
  static constexpr int inner = inner_of<Operand>;
  BackwardSizes<Operand> sizes;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const std::size_t sequence = team.league_rank() / shape.key_value_heads;
    const std::size_t key_head = team.league_rank() % shape.key_value_heads, first = sequences.starts(sequence);
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first);
    const Place place{sequence, first, key_head, length, round_up(length, lanes)};
    const Scratch scratch = sizes.take_from(team);
    begin(team, scratch, place);
    const std::size_t group = shape.heads / shape.key_value_heads;
    for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      for (int query = 0; query < length; query += query_block) add_query_block(team, scratch, place, head, query);
    }
    team.team_barrier();
    const auto scale_of_keys = [&](int) { return shape.scale; };
    const auto one = [](int) { return 1.0f; };
    const std::size_t key_column = shape.heads + key_head, value_column = key_column + shape.key_value_heads;
    store(team, scratch.dkeys, length, sizes.depth, scale_of_keys, head_rows(dqkv, first, key_column, shape.head_size));
    store(team, scratch.dvalues, length, sizes.depth, one, head_rows(dqkv, first, value_column, shape.head_size));
  }

  /// Loads keys and values, and clears their gradients.
  KOKKOS_INLINE_FUNCTION void begin(const Team& team, const Scratch& scratch, const Place& place) const {
    const auto keys = head_rows(qkv, place.first, shape.heads + place.key_head, shape.head_size);
    const auto values =
        head_rows(qkv, place.first, shape.heads + shape.key_value_heads + place.key_head, shape.head_size);
    load_rows(team, keys, place.length, place.stride, sizes.depth, scratch.keys);
    load_transposed(team, keys, place.length, place.stride, scratch.keys_transposed);
    load_transposed(team, values, place.length, place.stride, scratch.values_transposed);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, place.stride), [&](int row) {
      for (int d = 0; d < sizes.depth; ++d) scratch.dkeys[row * sizes.depth + d] = 0.0f;
      for (int d = 0; d < sizes.depth; ++d) scratch.dvalues[row * sizes.depth + d] = 0.0f;
    });
  }

  KOKKOS_INLINE_FUNCTION void add_query_block(const Team& team, const Scratch& scratch, const Place& place,
                                              std::size_t head, int query) const {
    const std::size_t size = shape.head_size, first = place.first + query;
    const int rows = place.length - query < query_block ? place.length - query : query_block;
    const int padded = round_up(rows, tile_rows), depth = sizes.depth;
    const int visible = shape.causal ? query + rows : place.length;
    const auto queries = head_rows(qkv, first, head, size), douts = head_rows(dout, first, head, size);
    team.team_barrier();  // the block before has been stored
    load_columns(team, queries, rows, padded, depth / inner, scratch.query_columns);
    load_columns(team, douts, rows, padded, depth / inner, scratch.dout_columns);
    if constexpr (inner > 1) {
      load_rows(team, queries, rows, padded, depth, scratch.query);
      load_rows(team, douts, rows, padded, depth, scratch.dout);
    }
    for (int key = 0; key < visible; key += key_block) {
      const int keys = visible - key < key_block ? visible - key : key_block;
      const DropoutPlace draws{sequences.sample_ids(place.sequence), static_cast<std::uint32_t>(head), query, key};
      add_key_block(team, scratch, place, draws, rows, keys);
    }
    team.team_barrier();
    store(
        team, scratch.dquery, rows, depth, [&](int) { return shape.scale; }, head_rows(dqkv, first, head, size));
  }

  KOKKOS_INLINE_FUNCTION void add_key_block(const Team& team, const Scratch& scratch, const Place& place,
                                            const DropoutPlace& block, int rows, int keys) const {
    const int depth = sizes.depth, size = static_cast<int>(shape.head_size), padded = round_up(keys, lanes);
    const int key = block.first_key, stride = place.stride;
    const Block<float> scores{scratch.scores, padded}, dscores{scratch.dscores, padded};
    team.team_barrier();
    DropoutBlock draws{};
    if (dropout.active()) draws = draw_block(team, dropout, block, rows, keys, scratch.draws);
    product<Operand>(team, rows, keys, size, {scratch.query_columns, depth / inner, 1},
                     {scratch.keys_transposed + key, stride}, false, scores);
    product<Operand>(team, rows, keys, size, {scratch.dout_columns, depth / inner, 1},
                     {scratch.values_transposed + key, stride}, false, dscores);
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, operands_of<Operand>(rows)), [&](int index) {
      if (dropout.active()) return differentiate_scores<true>(scratch, place, block, draws, index, rows, keys);
      differentiate_scores<false>(scratch, place, block, draws, index, rows, keys);
    });
    team.team_barrier();
    product<Operand>(team, keys, depth, rows, {scratch.probabilities, 1, padded}, {scratch.dout, depth}, true,
                     {scratch.dvalues + key * depth, depth});
    product<Operand>(team, keys, depth, rows, {scratch.gradients, 1, padded}, {scratch.query, depth}, true,
                     {scratch.dkeys + key * depth, depth});
    product<Operand>(team, rows, depth, keys, {scratch.gradients_columns, padded / inner, 1},
                     {scratch.keys + key / inner * depth, depth}, key > 0, {scratch.dquery, depth});
  }

  /// One row, or two where operands are pairs.
  template <bool drops>
  KOKKOS_INLINE_FUNCTION void differentiate_scores(const Scratch& scratch, const Place& place,
                                                   const DropoutPlace& block, const DropoutBlock& draws, int index,
                                                   int rows, int keys) const {
    const int padded = round_up(keys, lanes), row = index * inner;
    const ScoreRule rule{shape.scale * log2_e, draws.threshold, dropout.scale()};
    const ScoreRow first = score_row(scratch, place, block, draws, row, rows, keys);
    if constexpr (inner == 1) {
      differentiate_row<drops>(rule, first, padded, scratch.scores + row * padded, scratch.dscores + row * padded);
    } else {
      const ScoreRow second = score_row(scratch, place, block, draws, row + 1, rows, keys);
      differentiate_rows<drops>(rule, first, second, padded, scratch.probabilities + index * padded,
                                scratch.gradients + index * padded, scratch.gradients_columns + index * padded);
    }
  }

  /// A row beyond the last, which was loaded as zeros, gets probabilities of zero.
  KOKKOS_INLINE_FUNCTION ScoreRow score_row(const Scratch& scratch, const Place& place, const DropoutPlace& block,
                                            const DropoutBlock& draws, int row, int rows, int keys) const {
    const int padded = round_up(keys, lanes), before = block.first_query + row + 1 - block.first_key;
    float* const x = scratch.scores + row * padded;
    hide_keys(shape.causal && before < keys ? before : keys, padded, x);
    ScoreRow found{x, scratch.dscores + row * padded, draws.row(row), Kokkos::Experimental::infinity_v<float>, 0.0f};
    if (row >= rows) return found;
    const std::size_t of_batch = place.first + block.first_query + row;
    found.normalizer = log_sum_exp(block.head, of_batch) * log2_e;
    found.row_sum = row_sums(block.head, of_batch);
    return found;
  }
};

}  // namespace
}  // namespace attention

template <class T>
void attention_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                        const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                        const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                        const Matrix<float>& row_sums) {
  attention::check_shapes(shape, sequences, qkv.extent(0), qkv.extent(1), dout.extent(1));
  const std::string obstacle = attention_obstacle(shape.kernel, precision_of<T>, shape.head_size);
  require(obstacle.empty(), "attention: " + obstacle);
  if constexpr (precision_of<T> != Precision::float32) {
    if (shape.kernel == AttentionKernel::tensor_cores) {
      return attention::tensor_core_backward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv,
                                                row_sums);
    }
  }
  Kokkos::parallel_for(
      with_work("mylos::Attention::row_sums", attention::row_sums_work(shape, out.extent(0), sizeof(T))),
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>(space, 0, out.extent(0)),
      attention::RowSums<T>{shape.heads, shape.head_size, out, dout, row_sums});
  attention::BackwardSizes<attention::OperandOf<T>> sizes(static_cast<int>(sequences.longest),
                                                          static_cast<int>(shape.head_size));
  attention::Policy policy = attention::make_policy(space, sequences.sample_ids.size() * shape.key_value_heads);
  attention::set_scratch(policy, sizes);
  Kokkos::parallel_for(
      with_work("mylos::Attention::backward", attention::backward_work(shape, sequences, sizeof(T))),
      with_functor_as_argument(policy),
      attention::Backward<T>{shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv, sizes});
}

std::size_t attention_backward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                       const TeamProcessor& processor) {
  if (shape.kernel == AttentionKernel::tensor_cores) return 0;
  const attention::BackwardSizes<float> sizes(static_cast<int>(longest), static_cast<int>(shape.head_size));
  return attention::all_scratch_bytes(sizes, samples * shape.key_value_heads, processor);
}

#define MYLOS_INSTANTIATE(T)                                                                                \
  template void attention_backward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, \
                                      const DropoutKey&, const ConstMatrix<T>&, const ConstMatrix<T>&,      \
                                      const ConstMatrix<float>&, const ConstMatrix<T>&, const Matrix<T>&,   \
                                      const Matrix<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
