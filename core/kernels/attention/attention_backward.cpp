#include "core/base/error.hpp"
#include "core/kernels/attention/attention_blocks.hpp"
#include "core/kernels/attention/attention_dropout.hpp"
#include "core/kernels/attention/attention_lanes.hpp"
#include "core/kernels/attention/attention_tiles.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/attention/cudnn_attention.hpp"
#include "core/kernels/attention/cudnn_attention_sizes.hpp"
#include "core/kernels/attention/tensor_core_attention.hpp"
#include "core/kernels/math.hpp"

#include <fmt/format.h>

#include <type_traits>

/// With P the probabilities, M the dropout factors (0 or 1 / (1 - p)), dP = M (dout v^T) and dS = P (dP - row sum of
/// dout out): dv = (P M)^T dout, dq = scale dS k, dk = scale dS^T q. One team computes a key-value head of a sequence
/// with all query heads of its group, so that no two teams add to the same element at a time. A long sequence is cut
/// into tiles (attention_tiles.hpp), whose teams add to the same sums in turn. On a host, most heads in float are
/// computed by attention_lanes.hpp instead.
namespace mylos {
namespace attention {
namespace {

/// The scratch of a team. `*_columns` arrays pack bfloat16 pairs along columns; the others along rows. For float
/// operands, both are the same array, and gradients overwrite scores.
template <class Operand>
struct BackwardScratch {
  Operand *keys, *keys_transposed, *values_transposed;     ///< (keys padded, depth); panels
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

/// The position of a team: the keys [first_key, + keys) of a sequence.
struct BackwardPosition {
  std::size_t sequence, first, key_head;  ///< first: row in the batch
  int length;                             ///< rows of the sequence
  int first_key, keys, stride;            ///< stride: padded number of keys
};

/// A row of scores and of dout v^T, with the row's dropout draws, normalizer and row sum.
struct ScoreRow {
  const float *x, *dx;
  const std::uint32_t* draws;  ///< for dropout, if any
  float normalizer, row_sum;
};

/// Parameters common to all rows.
struct ScoreRule {
  float scale;
  std::uint32_t threshold;
  float kept;  ///< factor of the probabilities that are kept
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

/// Differentiates two rows and packs the results into pairs: pairs of the two rows, and pairs along each row's columns.
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

template <class T, class Operand>
struct Backward {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout;
  ConstMatrix<T> qkv;
  ConstMatrix<float> log_sum_exp;
  ConstMatrix<T> dout;
  ConstMatrix<float> row_sums;
  Matrix<T> dqkv;
  Matrix<float> partial_sums;  ///< sums between the tiles of a sequence; like `dqkv` but unscaled
  using Scratch = BackwardScratch<Operand>;
  static constexpr int inner = inner_of<Operand>;
  BackwardSizes<Operand> sizes;
  Wave wave;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const int key_tile = team.league_rank() % wave.tiles;
    const std::size_t head_index = team.league_rank() / wave.tiles, sequence = head_index / shape.key_value_heads;
    const std::size_t first = sequences.starts(sequence);
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first);
    const int group = static_cast<int>(shape.heads / shape.key_value_heads);
    const Tile tile = wave.tile(key_tile, group, length, shape);
    if (tile.heads == 0) return;
    const int first_key = key_tile * wave.side, keys = at_most(length - first_key, wave.side);
    const BackwardPosition position{
        sequence, first, head_index % shape.key_value_heads, length, first_key, keys, round_up(keys, lanes)};
    const Scratch scratch = sizes.take_from(team);
    [[maybe_unused]] const std::conditional_t<(inner > 1), PairTileScope, int> tiles{};
    begin(team, scratch, position, tile);
    const int end = at_most(shape.mask().end_of_queries(first_key + keys - 1, length), tile.first_query + wave.side);
    for (int head = tile.head; head < tile.head + tile.heads; ++head) {
      const std::size_t query_head = position.key_head * group + head;
      for (int query = tile.first_query; query < end; query += query_block) {
        add_query_block(team, scratch, position, tile, query_head, query);
      }
    }
    team.team_barrier();
    store_keys(team, scratch, position, tile);
  }

  /// Loads keys and values, and initializes their gradients to zero or to the sums of earlier tiles.
  KOKKOS_INLINE_FUNCTION void begin(const Team& team, const Scratch& scratch, const BackwardPosition& position,
                                    const Tile& tile) const {
    const std::size_t row = position.first + position.first_key, size = shape.head_size;
    const std::size_t key_column = shape.heads + position.key_head, value_column = key_column + shape.key_value_heads;
    const auto keys = head_rows(qkv, row, key_column, size), values = head_rows(qkv, row, value_column, size);
    load_rows(team, keys, position.keys, position.stride, sizes.depth, scratch.keys);
    load_transposed(team, keys, position.keys, position.stride, scratch.keys_transposed);
    load_transposed(team, values, position.keys, position.stride, scratch.values_transposed);
    if (tile.begins_keys) {
      return Kokkos::parallel_for(Kokkos::TeamThreadRange(team, position.stride), [&](int index) {
        for (int d = 0; d < sizes.depth; ++d) scratch.dkeys[index * sizes.depth + d] = 0.0f;
        for (int d = 0; d < sizes.depth; ++d) scratch.dvalues[index * sizes.depth + d] = 0.0f;
      });
    }
    const ConstMatrix<float> sums = partial_sums;
    load_columns(team, head_rows(sums, row, key_column, size), position.keys, position.stride, sizes.depth,
                 scratch.dkeys);
    load_columns(team, head_rows(sums, row, value_column, size), position.keys, position.stride, sizes.depth,
                 scratch.dvalues);
  }

  /// Stores the gradients of keys and values: scaled after the last tile, otherwise the sums so far.
  KOKKOS_INLINE_FUNCTION void store_keys(const Team& team, const Scratch& scratch, const BackwardPosition& position,
                                         const Tile& tile) const {
    const std::size_t row = position.first + position.first_key, size = shape.head_size;
    const std::size_t key_column = shape.heads + position.key_head, value_column = key_column + shape.key_value_heads;
    const int depth = sizes.depth;
    const auto one = [](int) { return 1.0f; };
    if (!tile.ends_keys) {
      store(team, scratch.dkeys, position.keys, depth, one, head_rows(partial_sums, row, key_column, size));
      return store(team, scratch.dvalues, position.keys, depth, one, head_rows(partial_sums, row, value_column, size));
    }
    const auto scale_of_keys = [&](int) { return shape.scale; };
    store(team, scratch.dkeys, position.keys, depth, scale_of_keys, head_rows(dqkv, row, key_column, size));
    store(team, scratch.dvalues, position.keys, depth, one, head_rows(dqkv, row, value_column, size));
  }

  KOKKOS_INLINE_FUNCTION void add_query_block(const Team& team, const Scratch& scratch,
                                              const BackwardPosition& position, const Tile& tile, std::size_t head,
                                              int query) const {
    const std::size_t size = shape.head_size, first = position.first + query;
    const int rows = at_most(position.length - query, query_block), padded = round_up(rows, query_padding<Operand>);
    const int depth = sizes.depth, end = position.first_key + position.keys;
    const int begin = first_key_of_blocks(shape, query, lanes),
              visible = shape.causal ? at_most(query + rows, end) : end;
    const auto queries = head_rows(qkv, first, head, size), douts = head_rows(dout, first, head, size);
    team.team_barrier();  // the previous block has been stored
    load_columns(team, queries, rows, padded, depth / inner, scratch.query_columns);
    load_columns(team, douts, rows, padded, depth / inner, scratch.dout_columns);
    if constexpr (inner > 1) {
      load_rows(team, queries, rows, padded, depth, scratch.query);
      load_rows(team, douts, rows, padded, depth, scratch.dout);
    }
    if (position.first_key > begin) {
      const ConstMatrix<float> sums = partial_sums;
      load_columns(team, head_rows(sums, first, head, size), rows, padded, depth, scratch.dquery);
    }
    for (int key = at_least(position.first_key, begin); key < visible; key += key_block) {
      const DropoutPosition draws{sequences.sample_ids(position.sequence), static_cast<std::uint32_t>(head), query,
                                  key};
      add_key_block(team, scratch, position, draws, rows, at_most(visible - key, key_block), key > begin);
    }
    team.team_barrier();
    if (!tile.ends_queries) {
      return store(
          team, scratch.dquery, rows, depth, [](int) { return 1.0f; }, head_rows(partial_sums, first, head, size));
    }
    store(
        team, scratch.dquery, rows, depth, [&](int) { return shape.scale; }, head_rows(dqkv, first, head, size));
  }

  /// Adds the gradients of a block of scores to those of its keys, and to those of its queries or begins them.
  KOKKOS_INLINE_FUNCTION void add_key_block(const Team& team, const Scratch& scratch, const BackwardPosition& position,
                                            const DropoutPosition& block, int rows, int keys,
                                            bool adds_to_queries) const {
    const int depth = sizes.depth, size = static_cast<int>(shape.head_size), padded = round_up(keys, lanes);
    const int key = block.first_key - position.first_key;
    const Block<float> scores{scratch.scores, padded}, dscores{scratch.dscores, padded};
    team.team_barrier();
    DropoutBlock draws{};
    if (dropout.active()) draws = draw_block(team, dropout, block, rows, keys, scratch.draws);
    product<Operand>(team, rows, keys, size, {scratch.query_columns, depth / inner, 1},
                     panels_of(scratch.keys_transposed, size, key), false, scores);
    product<Operand>(team, rows, keys, size, {scratch.dout_columns, depth / inner, 1},
                     panels_of(scratch.values_transposed, size, key), false, dscores);
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, operands_of<Operand>(rows)), [&](int index) {
      if (dropout.active()) return differentiate_scores<true>(scratch, position, block, draws, index, rows, keys);
      differentiate_scores<false>(scratch, position, block, draws, index, rows, keys);
    });
    if constexpr (inner > 1) clear_pairs(team, scratch, rows, padded);
    team.team_barrier();
    product<Operand>(team, keys, depth, rows, {scratch.probabilities, 1, padded}, rows_of(scratch.dout, depth), true,
                     {scratch.dvalues + key * depth, depth});
    product<Operand>(team, keys, depth, rows, {scratch.gradients, 1, padded}, rows_of(scratch.query, depth), true,
                     {scratch.dkeys + key * depth, depth});
    product<Operand>(team, rows, depth, keys, {scratch.gradients_columns, padded / inner, 1},
                     rows_of(scratch.keys + key / inner * depth, depth), adds_to_queries, {scratch.dquery, depth});
  }

  /// Clears the pairs of rows beyond `rows`, which a product over rows may read.
  KOKKOS_INLINE_FUNCTION void clear_pairs(const Team& team, const Scratch& scratch, int rows, int padded_keys) const {
    const int first = operands_of<Operand>(rows);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, query_padding<Operand> / inner - first), [&](int index) {
      Operand* const probabilities = scratch.probabilities + (first + index) * padded_keys;
      Operand* const gradients = scratch.gradients + (first + index) * padded_keys;
      for (int k = 0; k < padded_keys; ++k) probabilities[k] = gradients[k] = 0;
    });
  }

  /// Differentiates one row, or two if operands are pairs.
  template <bool drops>
  KOKKOS_INLINE_FUNCTION void differentiate_scores(const Scratch& scratch, const BackwardPosition& position,
                                                   const DropoutPosition& block, const DropoutBlock& draws, int index,
                                                   int rows, int keys) const {
    const int padded = round_up(keys, lanes), row = index * inner;
    const ScoreRule rule{shape.scale * log2_e, draws.threshold, dropout.scale()};
    const ScoreRow first = score_row(scratch, position, block, draws, row, rows, keys);
    if constexpr (inner == 1) {
      differentiate_row<drops>(rule, first, padded, scratch.scores + row * padded, scratch.dscores + row * padded);
    } else {
      const ScoreRow second = score_row(scratch, position, block, draws, row + 1, rows, keys);
      differentiate_rows<drops>(rule, first, second, padded, scratch.probabilities + index * padded,
                                scratch.gradients + index * padded, scratch.gradients_columns + index * padded);
    }
  }

  /// Rows beyond the last one were loaded as zeros; they get probabilities of zero.
  KOKKOS_INLINE_FUNCTION ScoreRow score_row(const Scratch& scratch, const BackwardPosition& position,
                                            const DropoutPosition& block, const DropoutBlock& draws, int row, int rows,
                                            int keys) const {
    const int padded = round_up(keys, lanes), query = block.first_query + row, before = query + 1 - block.first_key;
    float* const x = scratch.scores + row * padded;
    hide_keys(shape.mask().first_key(query) - block.first_key, shape.causal && before < keys ? before : keys, padded,
              x);
    ScoreRow found{x, scratch.dscores + row * padded, draws.row(row), Kokkos::Experimental::infinity_v<float>, 0.0f};
    if (row >= rows) return found;
    const std::size_t of_batch = position.first + block.first_query + row;
    found.normalizer = log_sum_exp(block.head, of_batch) * log2_e;
    found.row_sum = row_sums(block.head, of_batch);
    return found;
  }
};

/// Returns the array for sums between tiles: the gradient itself if it is float.
template <class T>
Matrix<float> sums_between_tiles(const Matrix<T>& dqkv, const Matrix<float>& given) {
  if constexpr (std::is_same_v<T, float>) return dqkv;
  require(given.extent(0) == 0 || (given.extent(0) == dqkv.extent(0) && given.extent(1) == dqkv.extent(1)),
          fmt::format("attention: partial sums are {} x {}, the gradient {} x {}", given.extent(0), given.extent(1),
                      dqkv.extent(0), dqkv.extent(1)));
  return given;
}

template <class T, class Operand>
void launch_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                     const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<float>& log_sum_exp,
                     const ConstMatrix<T>& dout, const ConstMatrix<float>& row_sums, const Matrix<T>& dqkv,
                     const Matrix<float>& sums) {
  const Wave wave = first_wave(sequences.longest, sums.extent(0) > 0);
  BackwardSizes<Operand> sizes(wave.side, static_cast<int>(shape.head_size));
  Policy policy =
      make_policy(space, sequences.sample_ids.size() * shape.key_value_heads * static_cast<std::size_t>(wave.tiles));
  set_scratch(policy, sizes);
  launch_waves(
      policy,
      Backward<T, Operand>{shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv, sums, sizes, wave},
      backward_work(shape, sequences, sizeof(T)));
}

}  // namespace
}  // namespace attention

template <class T>
void attention_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                        const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                        const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                        const Matrix<float>& row_sums, const Matrix<float>& partial_sums) {
  attention::check_shapes(shape, sequences, qkv.extent(0), qkv.extent(1), dout.extent(1));
  const std::string obstacle = attention_obstacle(shape.kernel, precision_of<T>, shape.head_size);
  require(obstacle.empty(), "attention: " + obstacle);
  if constexpr (precision_of<T> != Precision::float32) {
    if (shape.kernel == AttentionKernel::tensor_cores) {
      return attention::tensor_core_backward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv,
                                                row_sums);
    }
    if (shape.kernel == AttentionKernel::cudnn) {
      return attention::cudnn_backward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv);
    }
  }
  Kokkos::parallel_for(
      with_work("mylos::Attention::row_sums", attention::row_sums_work(shape, out.extent(0), sizeof(T))),
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>(space, 0, out.extent(0)),
      attention::RowSums<T>{shape.heads, shape.head_size, out, dout, row_sums});
  const Matrix<float> sums = attention::sums_between_tiles(dqkv, partial_sums);
  if constexpr (std::is_same_v<T, bfloat16> && attention::multiplies_pairs) {
    if (attention::bfloat16_operands() != attention::Bfloat16Operands::floats) {
      return attention::launch_backward<T, attention::Pair>(space, shape, sequences, dropout, qkv, log_sum_exp, dout,
                                                            row_sums, dqkv, sums);
    }
  }
  if constexpr (std::is_same_v<T, float> && attention::computes_in_lanes) {
    if (attention::fits_lanes(shape.head_size)) {
      return attention::backward_in_lanes(space, shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv);
    }
  }
  attention::launch_backward<T, float>(space, shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv, sums);
}

template <class T>
std::size_t attention_backward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                       const TeamProcessor& processor, bool has_partial_sums,
                                       std::size_t dropped_rows) {
  if (shape.kernel == AttentionKernel::tensor_cores) {
    return attention::kept_pairs_bytes(shape.heads, dropped_rows, longest);
  }
  if (shape.kernel == AttentionKernel::cudnn) {
    return attention::cudnn_backward_scratch(shape, samples, longest, processor.architecture);
  }
  const attention::Wave wave = attention::first_wave(longest, has_partial_sums);
  const std::size_t league = samples * shape.key_value_heads * static_cast<std::size_t>(wave.tiles);
  if constexpr (std::is_same_v<T, float> && attention::computes_in_lanes) {
    if (processor.on_host && attention::fits_lanes(shape.head_size)) {
      return league == 0 ? 0 : processor.threads * attention::backward_scratch_in_lanes(shape.head_size, wave.side);
    }
  }
  // Pairs need no more: keys and values shrink by more than the additional blocks take.
  const attention::BackwardSizes<float> sizes(wave.side, static_cast<int>(shape.head_size));
  return attention::all_scratch_bytes(sizes, league, processor);
}

#define MYLOS_INSTANTIATE(T)                                                                                \
  template void attention_backward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, \
                                      const DropoutKey&, const ConstMatrix<T>&, const ConstMatrix<T>&,      \
                                      const ConstMatrix<float>&, const ConstMatrix<T>&, const Matrix<T>&,   \
                                      const Matrix<float>&, const Matrix<float>&);                          \
  template std::size_t attention_backward_scratch<T>(const AttentionShape&, std::size_t, std::size_t,       \
                                                     const TeamProcessor&, bool, std::size_t);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
