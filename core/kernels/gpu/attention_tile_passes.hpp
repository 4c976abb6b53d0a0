#pragma once

#include "core/kernels/gpu/attention_tiles.hpp"

/// Attention's passes on tensor cores, as the work of one thread block. Its shared memory is an array of octets; each
/// pass defines the required number, `octets`.
namespace mylos::attention {

/// The forward pass, of queries over keys and values: computes the output and the log-sum-exps.
template <class Block, class T, int size>
struct ForwardPass {
  using Mma = typename Block::Mma;
  using C = PassCut<Block, size>;
  using Arguments = ForwardArguments<T>;
  using Scores = matrix::Sums<Mma, C::fragments, C::columns>;
  using Sums = matrix::Sums<Mma, C::fragments, size>;
  using Buffer = Buffers<C, C::own_tile>;
  static constexpr int octets = Buffer::end;
  /// Blocks at once on a multiprocessor for which the compiler leaves registers. Shared memory may allow fewer.
  static constexpr int blocks = size == 128 ? 3 : 5;

  /// A thread's state for its rows: the maxima of unscaled scores, and its part of the sums.
  struct Running {
    float maximum[C::fragments][Mma::halves], sum[C::fragments][Mma::halves];
  };

  static MYLOS_BLOCK_FUNCTION void run(const Block& block, const Arguments& all) {
    const BlockPosition position = BlockPosition::of(block, all, all.heads, C::own_rows);
    if (position.own >= position.length) return;
    const std::size_t stride = all.columns(size), first = position.first + position.own;
    const PassingKeys<T, C, Buffer> keys(block, all, position);
    matrix::copy_tile<size, C::own_rows>(block, all.qkv + first * stride + position.head * size, stride,
                                         position.length - position.own, 0);
    keys.copy(block, keys.first_turn);

    const int row = block.warp() * C::warp_rows, query = position.own + row;
    const std::uint32_t queries = Mma::template left_address<size>(block, 0, row);
    Sums sums;
    sums.clear();
    Running running;
    MYLOS_UNROLLED
    for (int f = 0; f < C::fragments; ++f) {
      MYLOS_UNROLLED
      for (int half = 0; half < Mma::halves; ++half) {
        running.maximum[f][half] = hidden_score;
        running.sum[f][half] = 0.0f;
      }
    }
    for (int turn = keys.first_turn; keys.pass_in(turn); ++turn) {
      keys.advance(block, turn);
      if (query >= position.length) continue;
      MYLOS_LOOP
      for (int column = 0; column < C::buffered; column += C::columns) {
        if (!keys.are_seen(turn * C::buffered + column)) continue;
        add_keys(block, all, position, queries, row, turn, column, running, sums);
      }
    }
    if (query < position.length) finish(block, all, position, row, running, sums);
  }

  static MYLOS_BLOCK_FUNCTION void add_keys(const Block& block, const Arguments& all, const BlockPosition& position,
                                            std::uint32_t queries, int row, int turn, int column, Running& running,
                                            Sums& sums) {
    const int query = position.own + row, key = turn * C::buffered + column;
    const int g = Mma::group(block.lane()), t = Mma::in_group(block.lane());
    KeptQueries<Mma, C::fragments, C::columns> kept;
    kept.load(block, all, position, query, key);  // before the product, during which it arrives
    Scores scores;
    Mma::template multiply_transposed<T, size>(
        block, queries, Mma::template transposed_address<size>(block, Buffer::tile(turn, 0), column), scores);
    if (key + C::columns > position.length || all.mask.hides_any(key, C::columns, query, C::warp_rows)) {
      Scores::for_each([&](int f, int j, int i) {
        const int of = Mma::column(key, j, t, i);
        const int by = Mma::row_of(query + Mma::row(g), f, i / Mma::adjacent);
        if (of >= position.length || all.mask.hides(of, by)) scores.c[f][j][i] = hidden_score;
      });
    }
    exponentiate(block, all.scale * log2_of_e, scores, running, sums);
    if (all.dropout.active()) {
      Scores::for_each([&](int f, int j, int i) {
        if (!kept(f, j, i)) scores.c[f][j][i] = 0.0f;
      });
    }
    matrix::Operands<Mma, C::fragments, C::columns> probabilities;
    Mma::template round<T>(block, scores, probabilities);
    Mma::template multiply_add<T, size>(block, probabilities,
                                        Mma::template right_address<size>(block, Buffer::tile(turn, 1), column), sums);
  }

  /// Replaces scores by exponentials relative to the largest score of their row so far, and rescales the sums
  /// accordingly.
  static MYLOS_BLOCK_FUNCTION void exponentiate(const Block& block, float scale, Scores& scores, Running& running,
                                                Sums& sums) {
    MYLOS_UNROLLED
    for (int f = 0; f < C::fragments; ++f) {
      MYLOS_UNROLLED
      for (int half = 0; half < Mma::halves; ++half) {
        const int first = half * Mma::adjacent, end = first + Mma::adjacent;
        const float before = running.maximum[f][half];
        float largest = before;
        MYLOS_UNROLLED
        for (int j = 0; j < Scores::tiles; ++j) {
          MYLOS_UNROLLED
          for (int i = first; i < end; i += 2) {
            largest = Kokkos::fmax(largest, Kokkos::fmax(scores.c[f][j][i], scores.c[f][j][i + 1]));
          }
        }
        largest = Kokkos::fmax(largest, block.exchange(largest, Mma::lane(0, 1)));
        largest = Kokkos::fmax(largest, block.exchange(largest, Mma::lane(0, 2)));
        const float correction = block.exp2((before - largest) * scale), base = largest * scale;
        float sum = 0.0f;
        MYLOS_UNROLLED
        for (int j = 0; j < Scores::tiles; ++j) {
          MYLOS_UNROLLED
          for (int i = first; i < end; ++i) {
            scores.c[f][j][i] = block.exp2(scores.c[f][j][i] * scale - base);
            sum += scores.c[f][j][i];
          }
        }
        running.maximum[f][half] = largest;
        running.sum[f][half] = running.sum[f][half] * correction + sum;
        MYLOS_UNROLLED
        for (int j = 0; j < Sums::tiles; ++j) {
          MYLOS_UNROLLED
          for (int i = first; i < end; ++i) sums.c[f][j][i] *= correction;
        }
      }
    }
  }

  static MYLOS_BLOCK_FUNCTION void finish(const Block& block, const Arguments& all, const BlockPosition& position,
                                          int row, const Running& running, const Sums& sums) {
    const int g = Mma::group(block.lane()), left = position.length - position.own - row;
    const float kept = all.dropout.active() ? all.dropout.scale() : 1.0f;
    const std::size_t first = position.first + position.own + row, width = static_cast<std::size_t>(all.heads) * size;
    float factor[C::fragments][Mma::halves];
    MYLOS_UNROLLED
    for (int f = 0; f < C::fragments; ++f) {
      MYLOS_UNROLLED
      for (int half = 0; half < Mma::halves; ++half) {
        float sum = running.sum[f][half];
        sum += block.exchange(sum, Mma::lane(0, 1));
        sum += block.exchange(sum, Mma::lane(0, 2));
        factor[f][half] = kept / sum;
        const int own = Mma::row_of(Mma::row(g), f, half);
        if (Mma::in_group(block.lane()) == 0 && own < left) {
          all.log_sum_exp[position.head * all.rows + first + own] =
              running.maximum[f][half] * all.scale + Kokkos::log(sum);
        }
      }
    }
    const auto factor_of = [&](int f, int half) { return factor[f][half]; };
    matrix::store_rows<T, size>(block, sums, factor_of, 0, row, all.out + first * width + position.head * size, width,
                                left);
  }
};

/// Converts scores to probabilities and gradients, for both backward passes.
struct ScoreGradients {
  float scale, kept_scale;

  /// `x` is the score of a visible key; it becomes the probability after dropout. `dx` is the gradient of that
  /// probability; it becomes the gradient of the score, without the scale.
  template <class Block>
  MYLOS_BLOCK_FUNCTION void operator()(const Block& block, float normalizer, float row_sum, bool is_kept, float& x,
                                       float& dx) const {
    const float probability = block.exp2(x * scale - normalizer);
    const float factor = is_kept ? kept_scale : 0.0f;
    dx = probability * (factor * dx - row_sum);
    x = probability * factor;
  }
};

template <class T>
MYLOS_BLOCK_FUNCTION ScoreGradients score_gradients(const PackedHeads<T>& all) {
  return {all.scale * log2_of_e, all.dropout.scale()};
}

/// The backward pass of queries over keys and values: computes dq, and the row sums of dout * out, which the other pass
/// reads.
template <class Block, class T, int size>
struct QueryPass {
  using Mma = typename Block::Mma;
  using C = PassCut<Block, size>;
  using Arguments = BackwardArguments<T>;
  using Scores = matrix::Sums<Mma, C::fragments, C::columns>;
  using Sums = matrix::Sums<Mma, C::fragments, size>;
  using Buffer = Buffers<C, 2 * C::own_tile>;
  static constexpr int octets = Buffer::end + C::own_rows / 4;  ///< plus one float per own row
  static constexpr int blocks = size == 128 ? 3 : 4;            ///< as for ForwardPass

  /// A thread's data for its rows.
  struct Rows {
    float normalizer[C::fragments][Mma::halves], row_sum[C::fragments][Mma::halves];
  };

  static MYLOS_BLOCK_FUNCTION void run(const Block& block, const Arguments& all) {
    const BlockPosition position = BlockPosition::of(block, all, all.heads, C::own_rows);
    if (position.own >= position.length) return;
    const int left = position.length - position.own;
    const PassingKeys<T, C, Buffer> keys(block, all, position);
    const std::size_t stride = all.columns(size), width = static_cast<std::size_t>(all.heads) * size;
    float* const row_sums = reinterpret_cast<float*>(block.shared() + Buffer::end);
    const std::size_t first = position.first + position.own;
    matrix::copy_tile<size, C::own_rows>(block, all.qkv + first * stride + position.head * size, stride, left, 0);
    matrix::copy_tile<size, C::own_rows>(block, all.dout + first * width + position.head * size, width, left,
                                         C::own_tile);
    keys.copy(block, keys.first_turn);
    add_up_rows(block, all, position, row_sums);

    const int row = block.warp() * C::warp_rows, query = position.own + row;
    const std::uint32_t queries = Mma::template left_address<size>(block, 0, row);
    const std::uint32_t douts = Mma::template left_address<size>(block, C::own_tile, row);
    Sums sums;
    sums.clear();
    Rows rows{};
    for (int turn = keys.first_turn; keys.pass_in(turn); ++turn) {
      keys.advance(block, turn);
      if (query >= position.length) continue;
      if (turn == keys.first_turn) rows = rows_of(block, all, position, row, row_sums);
      MYLOS_LOOP
      for (int column = 0; column < C::buffered; column += C::columns) {
        if (!keys.are_seen(turn * C::buffered + column)) continue;
        add_keys(block, all, position, queries, douts, row, turn, column, rows, sums);
      }
    }
    if (query >= position.length) return;
    matrix::store_rows<T, size>(
        block, sums, [&](int, int) { return all.scale; }, 0, row,
        all.dqkv + (first + row) * stride + position.head * size, stride, left - row);
  }

  /// Computes row_sums (own rows) of dout * out; adjacent threads cooperate on a row. Rows beyond the sequence get
  /// undefined values.
  static MYLOS_BLOCK_FUNCTION void add_up_rows(const Block& block, const Arguments& all, const BlockPosition& position,
                                               float* row_sums) {
    constexpr int step = Mma::threads / C::octets, rounds = C::own_rows / step, at_once = rounds < 4 ? rounds : 4;
    static_assert(rounds % at_once == 0);
    const std::size_t width = static_cast<std::size_t>(all.heads) * size, first = position.first + position.own;
    const int own = block.thread() / C::octets, octet = block.thread() % C::octets,
              last = position.length - position.own - 1;
    const std::size_t column = position.head * size + octet * matrix::octet_size;
    MYLOS_LOOP
    for (int begin = 0; begin < C::own_rows; begin += at_once * step) {
      Octet x[at_once], dx[at_once];  // all loads are issued before the first result is used
      MYLOS_UNROLLED
      for (int i = 0; i < at_once; ++i) {
        const int row = begin + i * step + own;
        const std::size_t at = (first + (row < last ? row : last)) * width + column;
        x[i] = *reinterpret_cast<const Octet*>(all.out + at);
        dx[i] = *reinterpret_cast<const Octet*>(all.dout + at);
      }
      MYLOS_UNROLLED
      for (int i = 0; i < at_once; ++i) {
        const int row = begin + i * step + own;
        float sum = 0.0f;
        MYLOS_UNROLLED
        for (int w = 0; w < 4; ++w) sum += matrix::dot<T>(x[i].words[w], dx[i].words[w]);
        MYLOS_UNROLLED
        for (int distance = 1; distance < C::octets; distance *= 2) sum += block.exchange(sum, distance);
        if (octet != 0) continue;
        row_sums[row] = sum;
        if (row <= last) all.row_sums[position.head * all.rows + first + row] = sum;
      }
    }
  }

  static MYLOS_BLOCK_FUNCTION Rows rows_of(const Block& block, const Arguments& all, const BlockPosition& position,
                                           int row, const float* row_sums) {
    const int g = Mma::group(block.lane());
    Rows rows;
    MYLOS_UNROLLED
    for (int f = 0; f < C::fragments; ++f) {
      MYLOS_UNROLLED
      for (int half = 0; half < Mma::halves; ++half) {
        const int own = Mma::row_of(row + Mma::row(g), f, half);
        const int query = position.own + own;
        rows.row_sum[f][half] = row_sums[own];
        rows.normalizer[f][half] = query < position.length
                                       ? all.log_sum_exp[position.head * all.rows + position.first + query] * log2_of_e
                                       : 0.0f;
      }
    }
    return rows;
  }

  static MYLOS_BLOCK_FUNCTION void add_keys(const Block& block, const Arguments& all, const BlockPosition& position,
                                            std::uint32_t queries, std::uint32_t douts, int row, int turn, int column,
                                            const Rows& rows, Sums& sums) {
    const int keys = Buffer::tile(turn, 0), values = Buffer::tile(turn, 1);
    const int query = position.own + row, key = turn * C::buffered + column;
    const int g = Mma::group(block.lane()), t = Mma::in_group(block.lane());
    KeptQueries<Mma, C::fragments, C::columns> kept;
    kept.load(block, all, position, query, key);
    Scores scores, dscores;
    Mma::template multiply_transposed<T, size>(block, queries,
                                               Mma::template transposed_address<size>(block, keys, column), scores);
    Mma::template multiply_transposed<T, size>(block, douts,
                                               Mma::template transposed_address<size>(block, values, column), dscores);
    const bool hides = key + C::columns > position.length || all.mask.hides_any(key, C::columns, query, C::warp_rows);
    const ScoreGradients gradients = score_gradients(all);
    if (hides) {
      Scores::for_each([&](int f, int j, int i) {
        const int of = Mma::column(key, j, t, i);
        const int by = Mma::row_of(query + Mma::row(g), f, i / Mma::adjacent);
        if (of >= position.length || all.mask.hides(of, by)) scores.c[f][j][i] = hidden_score;
      });
    }
    Scores::for_each([&](int f, int j, int i) {
      gradients(block, rows.normalizer[f][i / Mma::adjacent], rows.row_sum[f][i / Mma::adjacent], kept(f, j, i),
                scores.c[f][j][i], dscores.c[f][j][i]);
    });
    matrix::Operands<Mma, C::fragments, C::columns> rounded;
    Mma::template round<T>(block, dscores, rounded);
    Mma::template multiply_add<T, size>(block, rounded, Mma::template right_address<size>(block, keys, column), sums);
  }
};

/// The backward pass of keys and values over queries: computes dk and dv, summed over all query heads that use them.
template <class Block, class T, int size>
struct KeyPass {
  using Mma = typename Block::Mma;
  using C = PassCut<Block, size>;
  using Arguments = BackwardArguments<T>;
  using Scores = matrix::Sums<Mma, C::fragments, C::columns>;
  using Sums = matrix::Sums<Mma, C::fragments, size>;
  /// Stored after the tiles: for each buffer, the log-sum-exps and row sums of its queries.
  static constexpr int of_queries = 2 * C::buffered;  ///< floats per buffer
  using Buffer = Buffers<C, 2 * C::own_tile>;
  static constexpr int octets = Buffer::end + C::buffers * of_queries / 4;
  static constexpr int blocks = size == 128 ? 2 : 3;  ///< as for ForwardPass

  static MYLOS_BLOCK_FUNCTION void run(const Block& block, const Arguments& all) {
    const BlockPosition position = BlockPosition::of(block, all, all.key_value_heads, C::own_rows);
    if (position.own >= position.length) return;
    const int left = position.length - position.own, group = all.heads / all.key_value_heads;
    const std::size_t stride = all.columns(size), first = position.first + position.own;
    const std::size_t column = static_cast<std::size_t>((all.heads + position.head) * size);
    matrix::copy_tile<size, C::own_rows>(block, all.qkv + first * stride + column, stride, left, 0);
    matrix::copy_tile<size, C::own_rows>(block, all.qkv + first * stride + column + all.key_value_heads * size, stride,
                                         left, C::own_tile);
    // Loop over the queries of each head that uses these keys; with a causal mask, earlier queries see none of them,
    // and those after the last key's window do not either.
    const int from = all.mask.causal ? position.own / C::buffered * C::buffered : 0;
    const int end_of_queries = all.mask.end_of_queries(position.own + C::own_rows - 1, position.length);
    const int end = (position.head + 1) * group;
    int head = position.head * group, query = from;
    copy_queries(block, all, position, head, query, 0);

    const int row = block.warp() * C::warp_rows;
    const std::uint32_t keys = Mma::template left_address<size>(block, 0, row);
    const std::uint32_t values = Mma::template left_address<size>(block, C::own_tile, row);
    Sums dkeys, dvalues;
    dkeys.clear();
    dvalues.clear();
    for (int turn = 0; head < end; ++turn) {
      const bool is_last = query + C::buffered >= end_of_queries;  // last queries of this head
      const int next_head = is_last ? head + 1 : head, next_query = is_last ? from : query + C::buffered;
      if (C::buffers == 1 && turn > 0) {
        block.sync();  // the queries before these have been read
        copy_queries(block, all, position, head, query, turn);
      }
      block.wait_for_copies();
      block.sync();
      if (C::buffers > 1 && next_head < end) copy_queries(block, all, position, next_head, next_query, turn + 1);
      MYLOS_LOOP
      for (int begin = 0; begin < C::buffered && query + begin < position.length && row < left; begin += C::columns) {
        const int key = position.own + row;
        if (all.mask.causal && query + begin + C::columns <= key) continue;
        if (query + begin >= all.mask.end_of_queries(key + C::warp_rows - 1, position.length)) continue;
        add_queries(block, all, position, head, keys, values, row, query, begin, turn, dkeys, dvalues);
      }
      head = next_head;
      query = next_query;
    }
    if (row >= left) return;
    T* const to = all.dqkv + (first + row) * stride + column;
    matrix::store_rows<T, size>(
        block, dkeys, [&](int, int) { return all.scale; }, 0, row, to, stride, left - row);
    matrix::store_rows<T, size>(
        block, dvalues, [&](int, int) { return 1.0f; }, C::own_tile, row, to + all.key_value_heads * size, stride,
        left - row);
  }

  /// Starts copying the queries of a head, from `query` on, to the buffer of `turn`.
  static MYLOS_BLOCK_FUNCTION void copy_queries(const Block& block, const Arguments& all, const BlockPosition& position,
                                                int head, int query, int turn) {
    const std::size_t stride = all.columns(size), width = static_cast<std::size_t>(all.heads) * size;
    const std::size_t first = position.first + query;
    const int left = position.length - query;
    matrix::copy_tile<size, C::buffered>(block, all.qkv + first * stride + head * size, stride, left,
                                         Buffer::tile(turn, 0));
    matrix::copy_tile<size, C::buffered>(block, all.dout + first * width + head * size, width, left,
                                         Buffer::tile(turn, 1));
    const int which = block.thread() / C::buffered, i = block.thread() % C::buffered;
    if (which > 1) return;
    const float* const from = (which == 0 ? all.log_sum_exp : all.row_sums) + head * all.rows + first;
    const int to = Buffer::end * 4 + turn % C::buffers * of_queries + block.thread();  // in floats
    block.copy_word(block.address(0) + to * static_cast<int>(sizeof(float)), i < left ? from + i : from, i < left);
  }

  /// Adds the contributions of the queries [first + begin, + columns) of a head to the sums of a warp's keys.
  static MYLOS_BLOCK_FUNCTION void add_queries(const Block& block, const Arguments& all, const BlockPosition& position,
                                               int head, std::uint32_t keys, std::uint32_t values, int row, int first,
                                               int begin, int turn, Sums& dkeys, Sums& dvalues) {
    const int queries = Buffer::tile(turn, 0), douts = Buffer::tile(turn, 1);
    const float* const numbers =
        reinterpret_cast<const float*>(block.shared() + Buffer::end) + turn % C::buffers * of_queries;
    const int key = position.own + row, query = first + begin;
    const int g = Mma::group(block.lane()), t = Mma::in_group(block.lane());
    KeptKeys<Mma, C::columns> kept;
    kept.load(block, all, position, head, key, query);
    Scores scores, dscores;
    Mma::template multiply_transposed<T, size>(block, keys,
                                               Mma::template transposed_address<size>(block, queries, begin), scores);
    Mma::template multiply_transposed<T, size>(block, values,
                                               Mma::template transposed_address<size>(block, douts, begin), dscores);
    if (all.dropout.active()) kept.spread(block);
    const bool hides = all.mask.hides_any(key, C::warp_rows, query, C::columns);
    const ScoreGradients gradients = score_gradients(all);
    if (hides) {
      Scores::for_each([&](int f, int j, int i) {
        const int of = Mma::row_of(key + Mma::row(g), f, i / Mma::adjacent);
        if (all.mask.hides(of, Mma::column(query, j, t, i))) scores.c[f][j][i] = hidden_score;
      });
    }
    Scores::for_each([&](int f, int j, int i) {
      const int column = Mma::column(begin, j, t, i);
      gradients(block, numbers[column] * log2_of_e, numbers[C::buffered + column],
                !all.dropout.active() || kept(f, j, i), scores.c[f][j][i], dscores.c[f][j][i]);
    });
    matrix::Operands<Mma, C::fragments, C::columns> rounded;
    Mma::template round<T>(block, scores, rounded);
    Mma::template multiply_add<T, size>(block, rounded, Mma::template right_address<size>(block, douts, begin),
                                        dvalues);
    Mma::template round<T>(block, dscores, rounded);
    Mma::template multiply_add<T, size>(block, rounded, Mma::template right_address<size>(block, queries, begin),
                                        dkeys);
  }
};

}  // namespace mylos::attention
