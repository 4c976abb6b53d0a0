#pragma once

#include "core/kernels/column_sums.hpp"
#include "core/kernels/dropout_loop.hpp"
#include "core/kernels/held_rows.hpp"
#include "core/kernels/layer_norm.hpp"

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
    HeldRow<T, most> z;
    load_row<most>(team, columns, (is_sum ? this->x.data() : this->saved.input.data()) + start, z);
    if (is_sum) add_up(team, row, z);
    float mean, inverse;
    statistics(team, columns, z, mean, inverse);
    if (team.team_rank() == 0) {
      this->saved.mean(row) = mean;
      this->saved.inverse(row) = inverse;
    }
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      const KeptColumns kept = is_sum ? KeptColumns{} : kept_columns(this->dropout, this->rows, row, column);
      Chunk<T, row_chunk> weight, shift, y = {};
      weight.load(this->parameters.weight.data() + column);
      shift.load(this->parameters.bias.data() + column);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        y.set(j, T(normalized(z[k][j], mean, inverse, weight[j], shift[j]) * kept[j]));
      }
      if (is_sum) z[k].store(this->saved.input.data() + start + column);
      y.store(this->y.data() + start + column);
    });
  }

  /// Computes z from x.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_up(const Team& team, std::size_t row, HeldRow<T, most>& z) const {
    const std::size_t columns = this->y.extent(1);
    HeldRow<T, most> residual;
    load_row<most>(team, columns, this->residual.data() + row * columns, residual);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      const KeptColumns kept = kept_columns(this->dropout, this->rows, row, column);
      Chunk<T, row_chunk> bias;
      bias.load(this->bias.data() + column);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        z[k].set(j, T(float(residual[k][j]) + (float(z[k][j]) + float(bias[j])) * kept[j]));
      }
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
    float mean[at_once], inverse[at_once];
    float sums[2 * at_once];  ///< sums of g = dnormal * weight, and of g x^

    KOKKOS_FORCEINLINE_FUNCTION float normal(int r, int k, unsigned j) const {
      return (float(z[r][k][j]) - mean[r]) * inverse[r];
    }
  };

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t columns = this->dy.extent(1), sums = block * columns,
                      end = column_sum_end(block, this->dy.extent(0));
    HeldColumns held;
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      held[k].dweight = held[k].dbias_norm = held[k].dbias = {};
      held[k].weight.load(this->parameters.weight.data() + column);
    });
    for (std::size_t row = block * column_sum_rows; row < end; row += at_once) add_rows(team, row, end, held);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      held[k].dweight.store(this->dweight.data() + sums + column);
      held[k].dbias_norm.store(this->dbias_norm.data() + sums + column);
      if constexpr (residual) held[k].dbias.store(this->dbias.data() + sums + column);
    });
  }

  /// Processes up to `at_once` rows.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows(const Team& team, std::size_t first, std::size_t end,
                                            HeldColumns& held) const {
    const float count = static_cast<float>(this->dy.extent(1));
    Rows rows;
    load(team, first, end, rows);
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      rows.sums[2 * r] = rows.sums[2 * r + 1] = 0.0f;
      if (first + r < end) add_to_sums(team, r, held, rows);
    }
    add_over_team(team, rows.sums);
    MYLOS_UNROLLED
    for (int r = 0; r < at_once; ++r) {
      if (first + r < end)
        write(team, first + r, r, rows.sums[2 * r] / count, rows.sums[2 * r + 1] / count, held, rows);
    }
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void load(const Team& team, std::size_t first, std::size_t end, Rows& rows) const {
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
      if (!residual && first + r < end) drop(team, first + r, rows.dnormal[r]);
    }
  }

  /// Converts the gradient after dropout to the gradient before it.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void drop(const Team& team, std::size_t row, HeldRow<T, most>& gradient) const {
    for_held_chunks<most>(team, this->dy.extent(1), [&](int k, std::size_t column) {
      const KeptColumns kept = kept_columns(this->dropout, this->rows, row, column);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) gradient[k].set(j, T(float(gradient[k][j]) * kept[j]));
    });
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_to_sums(const Team& team, int r, const HeldColumns& held, Rows& rows) const {
    for_held_elements<most>(team, this->dy.extent(1), [&](int k, unsigned j) {
      const float g = float(rows.dnormal[r][k][j]) * float(held[k].weight[j]);
      rows.sums[2 * r] += g;
      rows.sums[2 * r + 1] += g * rows.normal(r, k, j);
    });
  }

  /// Writes dz = inverse (g - mean(g) - x^ mean(g x^)), and adds the row's contribution to the column sums.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Team& team, std::size_t row, int r, float mean_g, float mean_gx,
                                         HeldColumns& held, const Rows& rows) const {
    const std::size_t columns = this->dy.extent(1);
    for_held_chunks<most>(team, columns, [&](int k, std::size_t column) {
      const KeptColumns kept = residual ? kept_columns(this->dropout, this->rows, row, column) : KeptColumns{};
      Columns& mine = held[k];
      Chunk<T, row_chunk> dz = {}, dx = {};
      MYLOS_UNROLLED
      for (unsigned j = 0; j < row_chunk; ++j) {
        const float d = float(rows.dnormal[r][k][j]), normal = rows.normal(r, k, j);
        const float value = rows.inverse[r] * (d * float(mine.weight[j]) - mean_g - normal * mean_gx);
        mine.dweight.set(j, mine.dweight[j] + d * normal);
        mine.dbias_norm.set(j, mine.dbias_norm[j] + d);
        mine.dbias.set(j, mine.dbias[j] + value * kept[j]);
        dz.set(j, T(value));
        dx.set(j, T(value * kept[j]));
      }
      dz.store(this->dz.data() + row * columns + column);
      if constexpr (residual) dx.store(this->dx.data() + row * columns + column);
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
