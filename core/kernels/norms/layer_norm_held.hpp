#pragma once

#include "core/kernels/column_sums.hpp"
#include "core/kernels/dropout_loop.hpp"
#include "core/kernels/held_rows.hpp"
#include "core/kernels/norms/layer_norm.hpp"

/// LayerNorm over rows held in the registers of a device's team: each element is read once and written once. For rows
/// of limited length in whole, aligned chunks; the kernels of layer_norm.cpp support all rows.
namespace mylos::layer_norm {

/// One element of LayerNorm's result.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION float normalized(T z, float mean, float inverse, T weight, T shift) {
  return (float(z) - mean) * inverse * float(weight) + float(shift);
}

template <class T>
struct ForwardArrays {
  DropoutKey dropout;
  DropoutRows rows;
  ConstMatrix<T> x;  ///< no extent: z is already set, and dropout follows LayerNorm
  ConstVector<T> bias;
  ConstMatrix<T> residual;
  LayerNormParameters<T> parameters;
  LayerNormSaved<T> saved;
  Matrix<T> y;

  bool aligned() const {
    return are_aligned(x.data(), bias.data(), residual.data(), parameters.weight.data(), parameters.bias.data(),
                       saved.input.data(), y.data());
  }
};

template <class T>
struct BackwardArrays {
  DropoutKey dropout;
  DropoutRows rows;
  ConstMatrix<T> dy;
  LayerNormParameters<T> parameters;
  LayerNormSaved<T> saved;
  Matrix<T> dz, dx;                          ///< dx has no extent if dropout follows LayerNorm
  Matrix<float> dweight, dbias_norm, dbias;  ///< partial sums (blocks, H)

  bool aligned() const {
    return are_aligned(dy.data(), parameters.weight.data(), saved.input.data(), dz.data(), dx.data(), dweight.data(),
                       dbias_norm.data(), dbias.data());
  }
};

/// Up to four chunks per thread, two for float. Rows of 768 and of 1024 columns of 16-bit elements are held by one
/// warp, with three and four chunks per thread that load concurrently; with more threads, each would load fewer bytes
/// and wait at barriers.
template <class T>
struct NormalizeHeld : ForwardArrays<T> {
  static constexpr int most = 8 / static_cast<int>(sizeof(T));
  using Bounds = Kokkos::LaunchBounds<largest_team, 3>;  // 80 registers, 24 warps per multiprocessor

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = this->y.extent(1), start = row * columns;
    const bool is_sum = this->x.data() != nullptr;
    const HeldDropout dropout(this->dropout, this->rows);
    HeldRow<T, most> z;
    load_row<most>(team, columns, (is_sum ? this->x.data() : this->saved.input.data()) + start, z);
    const HeldDropout::Row of_row = dropout.row(row);
    if (is_sum) add_up(team, row, dropout, of_row, z);
    float mean, inverse;
    statistics(team, columns, z, mean, inverse);
    if (team.team_rank() == 0) {
      this->saved.mean(row) = mean;
      this->saved.inverse(row) = inverse;
    }
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      const DropoutDraw draw = is_sum ? DropoutDraw{} : dropout.draw(of_row, column);
      Chunk<T, row_chunk> weight, shift, y;
      float values[row_chunk];
      weight.load(this->parameters.weight.data() + column);
      shift.load(this->parameters.bias.data() + column);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        const float factor = is_sum ? 1.0f : dropout.factor(draw, j);
        values[j] = normalized(z[k][j], mean, inverse, weight[j], shift[j]) * factor;
      }
      y.round(values);
      if (is_sum) z[k].store(this->saved.input.data() + start + column);
      y.store(this->y.data() + start + column);
    });
  }

  /// Computes z from x.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_up(const Team& team, std::size_t row, const HeldDropout& dropout,
                                          const HeldDropout::Row& of_row, HeldRow<T, most>& z) const {
    const std::size_t columns = this->y.extent(1);
    HeldRow<T, most> residual;
    load_row<most>(team, columns, this->residual.data() + row * columns, residual);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      const DropoutDraw draw = dropout.draw(of_row, column);
      Chunk<T, row_chunk> bias;
      float sums[row_chunk];
      bias.load(this->bias.data() + column);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        sums[j] = float(residual[k][j]) + (float(z[k][j]) + float(bias[j])) * dropout.factor(draw, j);
      }
      z[k].round(sums);
    });
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void statistics(const Team& team, std::size_t columns, const HeldRow<T, most>& z,
                                              float& mean, float& inverse) const {
    const float count = static_cast<float>(columns);
    float sum[1] = {0.0f}, squares[1] = {0.0f};
    for_held_elements<most>(team, columns, [&](int k, unsigned j) { sum[0] += float(z[k][j]); });
    add_over_team(team, sum);
    mean = sum[0] / count;
    for_held_elements<most>(team, columns, [&](int k, unsigned j) {
      const float difference = float(z[k][j]) - mean;
      squares[0] += difference * difference;
    });
    add_over_team(team, squares);
    inverse = 1.0f / Kokkos::sqrt(squares[0] / count + this->parameters.epsilon);
  }
};

/// Processes one block of rows of a backward pass. A thread has eight columns, or `chunks` times as many for long rows,
/// whose weights and column sums stay in its registers for all rows. Rows are processed in groups, for which each
/// thread loads 64 bytes per input, so that several rows share one team reduction and their loads overlap. `residual`
/// is true if dropout came before LayerNorm, so that dx is the gradient through it; false if it came after.
template <class T, bool residual, int chunks>
struct BackwardHeld : BackwardArrays<T> {
  static constexpr int most = chunks;
  using Bounds = Kokkos::LaunchBounds<largest_team, 1>;
  static constexpr int at_once = rows_at_once<T, chunks>;

  struct Columns {
    Chunk<T, row_chunk> weight;
    Chunk<float, row_chunk> dweight, dbias_norm, dbias;
  };
  using HeldColumns = Columns[held_chunks<most>];

  struct Rows {
    HeldRow<T, most> dnormal[at_once], z[at_once];
    DropoutDraw draw[at_once][held_chunks<most>];
    float mean[at_once], inverse[at_once];
    float sums[2 * at_once];  ///< sums of g = dnormal * weight, and of g (z - mean)
  };

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t columns = this->dy.extent(1), sums = block * columns,
                      end = column_sum_end(block, this->dy.extent(0));
    const HeldDropout dropout(this->dropout, this->rows);
    HeldColumns held;
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      held[k].dweight = held[k].dbias_norm = held[k].dbias = {};
      held[k].weight.load(this->parameters.weight.data() + column);
    });
    for (std::size_t row = block * column_sum_rows; row < end; row += at_once) add_rows(team, dropout, row, end, held);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      held[k].dweight.store(this->dweight.data() + sums + column);
      held[k].dbias_norm.store(this->dbias_norm.data() + sums + column);
      if constexpr (residual) held[k].dbias.store(this->dbias.data() + sums + column);
    });
  }

  /// Processes up to `at_once` rows.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows(const Team& team, const HeldDropout& dropout, std::size_t first,
                                            std::size_t end, HeldColumns& held) const {
    const float share = 1.0f / static_cast<float>(this->dy.extent(1));
    Rows rows;
    load(team, dropout, first, end, rows);
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      rows.sums[2 * r] = rows.sums[2 * r + 1] = 0.0f;
      if (first + r < end) add_to_sums(team, r, held, rows);
    }
    add_over_team(team, rows.sums);
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      if (first + r < end) write(team, dropout, first + r, r, share, held, rows);
    }
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void load(const Team& team, const HeldDropout& dropout, std::size_t first,
                                        std::size_t end, Rows& rows) const {
    const std::size_t columns = this->dy.extent(1);
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      const std::size_t row = first + r;
      if (row >= end) continue;
      load_row<most>(team, columns, this->dy.data() + row * columns, rows.dnormal[r]);
      load_row<most>(team, columns, this->saved.input.data() + row * columns, rows.z[r]);
      rows.mean[r] = this->saved.mean(row);
      rows.inverse[r] = this->saved.inverse(row);
    }
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      if (first + r >= end) continue;
      const HeldDropout::Row row = dropout.row(first + r);
      for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
        rows.draw[r][k] = dropout.draw(row, column);
        if (!residual) drop(dropout, rows.draw[r][k], rows.dnormal[r][k]);
      });
    }
  }

  /// Converts the gradient after dropout to the gradient before it.
  KOKKOS_FORCEINLINE_FUNCTION static void drop(const HeldDropout& dropout, const DropoutDraw& draw,
                                               Chunk<T, row_chunk>& gradient) {
    float values[row_chunk];
    MYLOS_UNROLLED
    for (unsigned j = 0; j < row_chunk; ++j) values[j] = float(gradient[j]) * dropout.factor(draw, j);
    gradient.round(values);
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_to_sums(const Team& team, int r, const HeldColumns& held, Rows& rows) const {
    for_held_elements<most>(team, this->dy.extent(1), [&](int k, unsigned j) {
      const float g = float(rows.dnormal[r][k][j]) * float(held[k].weight[j]);
      rows.sums[2 * r] += g;
      rows.sums[2 * r + 1] += g * (float(rows.z[r][k][j]) - rows.mean[r]);
    });
  }

  /// Writes dz = inverse (g - mean(g) - x^ mean(g x^)), and adds the row's contribution to the column sums. With d =
  /// inverse dnormal and x^ = inverse (z - mean), dz = d weight + slope (z - mean) + shift.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Team& team, const HeldDropout& dropout, std::size_t row, int r,
                                         float share, HeldColumns& held, const Rows& rows) const {
    const std::size_t columns = this->dy.extent(1);
    const float mean = rows.mean[r], inverse = rows.inverse[r];
    const float shift = -inverse * (rows.sums[2 * r] * share);
    const float slope = -inverse * inverse * (inverse * (rows.sums[2 * r + 1] * share));
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      Columns& mine = held[k];
      float dz[row_chunk], dx[row_chunk];
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        const float dnormal = float(rows.dnormal[r][k][j]), d = inverse * dnormal;
        const float centered = float(rows.z[r][k][j]) - mean;
        dz[j] = d * float(mine.weight[j]) + (slope * centered + shift);
        mine.dweight.set(j, mine.dweight[j] + d * centered);
        mine.dbias_norm.set(j, mine.dbias_norm[j] + dnormal);
        if constexpr (!residual) continue;
        dx[j] = dz[j] * dropout.factor(rows.draw[r][k], j);
        mine.dbias.set(j, mine.dbias[j] + dx[j]);
      }
      Chunk<T, row_chunk> rounded;
      rounded.round(dz);
      rounded.store(this->dz.data() + row * columns + column);
      if constexpr (!residual) return;
      rounded.round(dx);
      rounded.store(this->dx.data() + row * columns + column);
    });
  }
};

/// The kernels for rows of different lengths.
template <class T, bool residual>
struct BackwardKernels {
  template <int chunks>
  using Held = BackwardHeld<T, residual, chunks>;
};

}  // namespace mylos::layer_norm
