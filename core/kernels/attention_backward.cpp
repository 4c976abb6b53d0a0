#include "core/kernels/attention_blocks.hpp"
#include "core/kernels/math.hpp"

/// With P the probabilities, M the dropout factors (0 or 1 / (1 - p)), dP = M (dout v^T) and dS = P (dP - row sum of
/// dout out): dv = (P M)^T dout, dq = scale dS k, dk = scale dS^T q. One team takes a key-value head of a sequence with
/// all query heads that share it, so that nothing is added by two teams.
namespace mylos {
namespace attention {
namespace {

/// The scratch of a team.
struct BackwardScratch {
  float *keys, *keys_transposed, *values_transposed;  ///< (keys padded, depth), (D, keys padded) twice
  float *dkeys, *dvalues;                             ///< (keys padded, depth)
  float *query, *dout, *dquery;                       ///< (query block, depth)
  float *probabilities, *dscores;                     ///< (query block, key block)
  float* draws;
};

struct BackwardSizes : BlockSizes {
  using BlockSizes::BlockSizes;
  std::size_t large() const { return scratch_bytes(std::size_t(padded_keys) * depth * 5, 5); }
  std::size_t fast() const {
    return scratch_bytes(query_block * (3 * depth + 2 * block_keys) + dropout_words(block_keys), 6);
  }
  KOKKOS_INLINE_FUNCTION BackwardScratch take_from(const Team& team) const {
    const int whole = padded_keys * depth, block = query_block * depth, scores = query_block * block_keys;
    return {take(team, 1, whole),
            take(team, 1, whole),
            take(team, 1, whole),
            take(team, 1, whole),
            take(team, 1, whole),
            take(team, 0, block),
            take(team, 0, block),
            take(team, 0, block),
            take(team, 0, scores),
            take(team, 0, scores),
            take(team, 0, dropout_words(block_keys))};
  }
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

/// A row of scores x becomes P, and of dout v^T, dx, becomes dS.
KOKKOS_INLINE_FUNCTION void differentiate_row(int padded, float normalizer, float row_sum, float* KOKKOS_RESTRICT x,
                                              float* KOKKOS_RESTRICT dx) {
  for (int k = 0; k < padded; ++k) {
    x[k] = exp2_approximate(x[k] - normalizer);
    dx[k] = x[k] * (dx[k] - row_sum);
  }
}

/// The same with dropout, where x becomes P M. `kept` is what kept probabilities are multiplied by.
KOKKOS_INLINE_FUNCTION void differentiate_row(const DropoutBlock& draws, int row, int padded, float normalizer,
                                              float row_sum, float kept, float* KOKKOS_RESTRICT x,
                                              float* KOKKOS_RESTRICT dx) {
  const std::uint32_t* KOKKOS_RESTRICT draw = draws.row(row);
  for (int k = 0; k < padded; ++k) {
    const float probability = exp2_approximate(x[k] - normalizer);
    const float factor = stored_draw(draw, k) >= draws.threshold ? kept : 0.0f;
    dx[k] = probability * (factor * dx[k] - row_sum);
    x[k] = probability * factor;
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
  BackwardSizes sizes;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const std::size_t sequence = team.league_rank() / shape.key_value_heads;
    const std::size_t key_head = team.league_rank() % shape.key_value_heads, first = sequences.starts(sequence);
    const int length = static_cast<int>(sequences.starts(sequence + 1) - first);
    const Place place{sequence, first, key_head, length, round_up(length, lanes)};
    const BackwardScratch scratch = sizes.take_from(team);
    begin(team, scratch, place);
    const std::size_t group = shape.heads / shape.key_value_heads;
    for (std::size_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      for (int query = 0; query < length; query += query_block) add_query_block(team, scratch, place, head, query);
    }
    team.team_barrier();
    // dkeys was summed from queries that are scaled already, and in units of log 2.
    const auto scale_of_keys = [](int) { return log_2; };
    const auto one = [](int) { return 1.0f; };
    const std::size_t key_column = shape.heads + key_head, value_column = key_column + shape.key_value_heads;
    store(team, scratch.dkeys, length, sizes.depth, scale_of_keys, head_rows(dqkv, first, key_column, shape.head_size));
    store(team, scratch.dvalues, length, sizes.depth, one, head_rows(dqkv, first, value_column, shape.head_size));
  }

  /// Loads keys and values, and clears their gradients.
  KOKKOS_INLINE_FUNCTION void begin(const Team& team, const BackwardScratch& scratch, const Place& place) const {
    const auto keys = head_rows(qkv, place.first, shape.heads + place.key_head, shape.head_size);
    const auto values =
        head_rows(qkv, place.first, shape.heads + shape.key_value_heads + place.key_head, shape.head_size);
    load(team, keys, place.length, place.length, sizes.depth, 1.0f, scratch.keys);
    load_transposed(team, keys, place.length, place.stride, scratch.keys_transposed);
    load_transposed(team, values, place.length, place.stride, scratch.values_transposed);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, place.stride), [&](int row) {
      for (int d = 0; d < sizes.depth; ++d) scratch.dkeys[row * sizes.depth + d] = 0.0f;
      for (int d = 0; d < sizes.depth; ++d) scratch.dvalues[row * sizes.depth + d] = 0.0f;
    });
  }

  KOKKOS_INLINE_FUNCTION void add_query_block(const Team& team, const BackwardScratch& scratch, const Place& place,
                                              std::size_t head, int query) const {
    const std::size_t size = shape.head_size, first = place.first + query;
    const int rows = place.length - query < query_block ? place.length - query : query_block;
    const int padded = round_up(rows, tile_rows), depth = sizes.depth;
    const int visible = shape.causal ? query + rows : place.length;
    team.team_barrier();  // the block before has been stored
    load(team, head_rows(qkv, first, head, size), rows, padded, depth, shape.scale * log2_e, scratch.query);
    load(team, head_rows(dout, first, head, size), rows, padded, depth, 1.0f, scratch.dout);
    for (int key = 0; key < visible; key += key_block) {
      const int keys = visible - key < key_block ? visible - key : key_block;
      const DropoutPlace draws{sequences.sample_ids(place.sequence), static_cast<std::uint32_t>(head), query, key};
      add_key_block(team, scratch, place, draws, rows, keys);
    }
    team.team_barrier();
    store(
        team, scratch.dquery, rows, depth, [&](int) { return shape.scale; }, head_rows(dqkv, first, head, size));
  }

  KOKKOS_INLINE_FUNCTION void add_key_block(const Team& team, const BackwardScratch& scratch, const Place& place,
                                            const DropoutPlace& block, int rows, int keys) const {
    const int depth = sizes.depth, size = static_cast<int>(shape.head_size), padded = round_up(keys, lanes);
    const int key = block.first_key;
    const Block<float> probabilities{scratch.probabilities, padded}, dscores{scratch.dscores, padded};
    team.team_barrier();
    DropoutBlock draws{};
    if (dropout.active()) draws = draw_block(team, dropout, block, rows, keys, scratch.draws);
    product(team, rows, keys, size, {scratch.query, depth, 1}, {scratch.keys_transposed + key, place.stride}, false,
            probabilities);
    product(team, rows, keys, size, {scratch.dout, depth, 1}, {scratch.values_transposed + key, place.stride}, false,
            dscores);
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      const int before = block.first_query + row + 1 - key;
      hide_keys(shape.causal && before < keys ? before : keys, padded, probabilities.data + row * padded);
      const std::size_t of_batch = place.first + block.first_query + row;
      const float normalizer = log_sum_exp(block.head, of_batch) * log2_e, row_sum = row_sums(block.head, of_batch);
      float *const x = probabilities.data + row * padded, *const dx = dscores.data + row * padded;
      if (!dropout.active()) return differentiate_row(padded, normalizer, row_sum, x, dx);
      differentiate_row(draws, row, padded, normalizer, row_sum, dropout.scale(), x, dx);
    });
    team.team_barrier();
    product(team, keys, depth, rows, {probabilities.data, 1, padded}, {scratch.dout, depth}, true,
            {scratch.dvalues + key * depth, depth});
    product(team, keys, depth, rows, {dscores.data, 1, padded}, {scratch.query, depth}, true,
            {scratch.dkeys + key * depth, depth});
    product(team, rows, depth, keys, {dscores.data, padded, 1}, {scratch.keys + key * depth, depth}, key > 0,
            {scratch.dquery, depth});
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
  Kokkos::parallel_for("mylos::Attention::row_sums",
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>(space, 0, out.extent(0)),
                       attention::RowSums<T>{shape.heads, shape.head_size, out, dout, row_sums});
  const attention::BackwardSizes sizes(static_cast<int>(sequences.longest), static_cast<int>(shape.head_size));
  const auto league = static_cast<int>(sequences.sample_ids.size() * shape.key_value_heads);
  attention::Policy policy(space, league, Kokkos::AUTO);
  policy.set_scratch_size(0, Kokkos::PerTeam(sizes.fast())).set_scratch_size(1, Kokkos::PerTeam(sizes.large()));
  Kokkos::parallel_for(
      "mylos::Attention::backward", policy,
      attention::Backward<T>{shape, sequences, dropout, qkv, log_sum_exp, dout, row_sums, dqkv, sizes});
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
