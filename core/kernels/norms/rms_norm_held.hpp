#pragma once

#include "core/kernels/column_sums.hpp"
#include "core/kernels/held_rows.hpp"
#include "core/kernels/norms/rms_norm.hpp"

/// RMSNorm over rows held in the registers of a device's team: each element is read once and written once. For rows of
/// limited length in whole, aligned chunks; the kernels of rms_norm.cpp support all rows.
namespace mylos::rms_norm {

/// One element of RMSNorm's result.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T scaled(const T& z, float inverse, const T& weight) {
  return T(float(z) * inverse * float(weight));
}

template <class T>
struct ForwardArrays {
  ConstMatrix<T> residual;  ///< no extent: z is already set
  RmsNormParameters<T> parameters;
  RmsNormSaved<T> saved;
  Matrix<T> y;

  bool aligned() const { return are_aligned(residual.data(), parameters.weight.data(), saved.input.data(), y.data()); }
};

template <class T>
struct BackwardArrays {
  RmsNormParameters<T> parameters;
  RmsNormSaved<T> saved;
  ConstMatrix<T> dy;
  Matrix<T> dz;
  Matrix<float> partial;  ///< partial sums of dy x^ (blocks, H)

  bool aligned() const {
    return are_aligned(parameters.weight.data(), saved.input.data(), dy.data(), dz.data(), partial.data());
  }
};

/// Up to four chunks per thread, two for float, as in LayerNorm.
template <class T>
struct NormalizeHeld : ForwardArrays<T> {
  static constexpr int most = 8 / static_cast<int>(sizeof(T));
  using Bounds = Kokkos::LaunchBounds<largest_team, 3>;  // 80 registers, 24 warps per multiprocessor

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = this->y.extent(1), start = row * columns;
    HeldRow<T, most> z;
    load_row<most>(team, columns, this->saved.input.data() + start, z);
    if (this->residual.data() != nullptr) add_residual(team, start, z);
    float squares[1] = {0.0f};
    for_held_elements<most>(team, columns, [&](int k, unsigned j) { squares[0] += float(z[k][j]) * float(z[k][j]); });
    add_over_team(team, squares);
    const float inverse = 1.0f / Kokkos::sqrt(squares[0] / static_cast<float>(columns) + this->parameters.epsilon);
    if (team.team_rank() == 0) this->saved.inverse(row) = inverse;
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      Chunk<T, row_chunk> weight, y = {};
      weight.load(this->parameters.weight.data() + column);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) y.set(j, scaled(z[k][j], inverse, weight[j]));
      y.store(this->y.data() + start + column);
    });
  }

  /// Adds the residual to z, and stores the sum.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_residual(const Team& team, std::size_t start, HeldRow<T, most>& z) const {
    const std::size_t columns = this->y.extent(1);
    HeldRow<T, most> residual;
    load_row<most>(team, columns, this->residual.data() + start, residual);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) z[k].set(j, T(float(z[k][j]) + float(residual[k][j])));
      z[k].store(this->saved.input.data() + start + column);
    });
  }
};

/// Processes one block of rows of the backward pass: dz += inverse (g - x^ mean(g x^)) with g = dy weight and
/// x^ = z inverse. A thread has `chunks` times eight columns, whose weights and sums stay in its registers for all
/// rows; several rows share one team reduction.
template <class T, int chunks>
struct BackwardHeld : BackwardArrays<T> {
  static constexpr int most = chunks;
  using Bounds = Kokkos::LaunchBounds<largest_team, 1>;
  static constexpr int at_once = rows_at_once<T, chunks>;

  struct Columns {
    Chunk<T, row_chunk> weight;
    Chunk<float, row_chunk> dweight;
  };
  using HeldColumns = Columns[held_chunks<most>];

  struct Rows {
    HeldRow<T, most> dy[at_once], z[at_once], dz[at_once];
    float inverse[at_once];
    float sums[at_once];  ///< sums of g x^
  };

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t columns = this->dy.extent(1), sums = block * columns,
                      end = column_sum_end(block, this->dy.extent(0));
    HeldColumns held;
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      held[k].dweight = {};
      held[k].weight.load(this->parameters.weight.data() + column);
    });
    for (std::size_t row = block * column_sum_rows; row < end; row += at_once) add_rows(team, row, end, held);
    for_held_chunks<most>(
        team, columns, [&](int k, std::size_t column) { held[k].dweight.store(this->partial.data() + sums + column); });
  }

  /// Processes up to `at_once` rows.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows(const Team& team, std::size_t first, std::size_t end,
                                            HeldColumns& held) const {
    const std::size_t columns = this->dy.extent(1);
    Rows rows;
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      const std::size_t row = first + static_cast<std::size_t>(r);
      if (row < end) load(team, row, r, rows);
    }
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      rows.sums[r] = 0.0f;
      if (first + static_cast<std::size_t>(r) >= end) continue;
      for_held_elements<most>(team, columns, [&](int k, unsigned j) {
        rows.sums[r] += float(rows.dy[r][k][j]) * float(held[k].weight[j]) * (float(rows.z[r][k][j]) * rows.inverse[r]);
      });
    }
    add_over_team(team, rows.sums);
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      const std::size_t row = first + static_cast<std::size_t>(r);
      if (row < end) write(team, row, r, held, rows);
    }
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void load(const Team& team, std::size_t row, int r, Rows& rows) const {
    const std::size_t columns = this->dy.extent(1), start = row * columns;
    load_row<most>(team, columns, this->dy.data() + start, rows.dy[r]);
    load_row<most>(team, columns, this->saved.input.data() + start, rows.z[r]);
    load_row<most>(team, columns, static_cast<const T*>(this->dz.data() + start), rows.dz[r]);
    rows.inverse[r] = this->saved.inverse(row);
  }

  /// Writes the row's gradient, and adds its contribution to the column sums.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Team& team, std::size_t row, int r, HeldColumns& held,
                                         Rows& rows) const {
    const std::size_t columns = this->dy.extent(1);
    const float inverse = rows.inverse[r], mean = rows.sums[r] / static_cast<float>(columns);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      Columns& mine = held[k];
      Chunk<T, row_chunk>& dz = rows.dz[r][k];
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        const float normal = float(rows.z[r][k][j]) * inverse, d = float(rows.dy[r][k][j]);
        dz.set(j, T(float(dz[j]) + inverse * (d * float(mine.weight[j]) - normal * mean)));
        mine.dweight.set(j, mine.dweight[j] + d * normal);
      }
      dz.store(this->dz.data() + row * columns + column);
    });
  }
};

/// The kernels for rows of different lengths.
template <class T>
struct BackwardKernels {
  template <int chunks>
  using Held = BackwardHeld<T, chunks>;
};

}  // namespace mylos::rms_norm
