#pragma once

#include "core/kernels/chunks.hpp"

#include <initializer_list>

/// Sums over the rows of a matrix that do not depend on the number of threads. Rows are cut into blocks of fixed size,
/// a team sums each block into a row of partial sums, and those are added, in an order that depends only on the sizes.
namespace mylos {

/// Rows per block; fewer on a device, where a step has hardly more blocks than the device has multiprocessors.
inline constexpr std::size_t column_sum_rows = kernels_in_teams ? 16 : 32;

inline std::size_t column_sum_blocks(std::size_t rows) { return (rows + column_sum_rows - 1) / column_sum_rows; }
/// Returns the end of a block of a matrix with `rows` rows. The last block may be shorter.
KOKKOS_FORCEINLINE_FUNCTION std::size_t column_sum_end(std::size_t block, std::size_t rows) {
  const std::size_t end = (block + 1) * column_sum_rows;
  return end < rows ? end : rows;
}

/// Returns matrix `index` of partial sums (blocks, columns) in a workspace of column_sum_workspace floats.
Matrix<float> partial_sums(const Vector<float>& workspace, std::size_t index, std::size_t rows, std::size_t columns);

/// Partial sums (blocks, N), and the array they are added to (N).
struct PartialSums {
  ConstMatrix<float> partial;
  Vector<float> sums;
};

/// Adds the sum of partial over blocks to sums, in a fixed order, for up to three pairs of equal shape.
void add_partial_sums(const ExecutionSpace& space, std::initializer_list<PartialSums> all);

/// Distribution of a row sum over a device's team.
struct RowSharing {
  std::size_t columns = 0;  ///< columns per team; a multiple of 8 on a device
  std::size_t slices = 1;   ///< threads per column: slice s sums rows s, s + slices ...
  bool aligned = false;     ///< rows and sums are 16-byte aligned

  TeamShape shape(const ExecutionSpace& space, std::size_t chunk) const {
    return {.threads = team_size_for(space, columns / chunk * slices),
            .scratch_bytes = slices > 1 ? slices * columns * sizeof(float) + access_bytes : 0};
  }
};

enum class SumStart { zero, present };

/// sum[j] = or += row(first)[j] + ... + row(last - 1)[j] for each of `columns` columns, in the order of the rows or, on
/// a device, of the slices.
template <SumStart start, class Row>
KOKKOS_FORCEINLINE_FUNCTION void team_sum_rows(const HostTeam& team, const RowSharing&, std::size_t columns,
                                               std::size_t first, std::size_t last, const Row& row, float* sum) {
  if constexpr (start == SumStart::zero) team_for(team, columns, [=](std::size_t j) { sum[j] = 0.0f; });
  for (std::size_t i = first; i < last; ++i) {
    const auto* const in = row(i);
    team_for(team, columns, [=](std::size_t j) { sum[j] += float(in[j]); });
  }
}

/// Sums rows first, first + stride ... below `last` in adjacent columns. Several rows are loaded ahead, so that loads
/// do not wait for each other.
template <std::size_t width, class Row>
KOKKOS_FORCEINLINE_FUNCTION Chunk<float, width> sum_of_rows(std::size_t column, std::size_t first, std::size_t stride,
                                                            std::size_t last, const Row& row) {
  using T = std::remove_cvref_t<decltype(*row(0))>;
  constexpr std::size_t ahead = 8;
  Chunk<float, width> sum = {};
  for (std::size_t i = first; i < last; i += ahead * stride) {
    Chunk<T, width> read[ahead];
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < ahead; ++k) {
      if (i + k * stride < last) read[k].load(row(i + k * stride) + column);
    }
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < ahead; ++k) {
      if (i + k * stride >= last) continue;
      MYLOS_UNROLLED
      for (unsigned j = 0; j < width; ++j) sum.set(j, sum[j] + float(read[k][j]));
    }
  }
  return sum;
}

template <std::size_t width, SumStart start, class Team, class Row>
KOKKOS_FORCEINLINE_FUNCTION void team_sum_rows_of(const Team& team, std::size_t slices, std::size_t columns,
                                                  std::size_t first, std::size_t last, const Row& row, float* sum) {
  const std::size_t chunks = columns / width;
  float* const sums_of_slices = slices == 1
                                    ? sum
                                    : static_cast<float*>(team.team_scratch(0).get_shmem_aligned(
                                          static_cast<std::ptrdiff_t>(slices * columns * sizeof(float)), access_bytes));
  const auto threads = static_cast<std::size_t>(team.team_size());
  for (auto item = static_cast<std::size_t>(team.team_rank()); item < chunks * slices; item += threads) {
    const std::size_t slice = item / chunks, column = item % chunks * width;
    Chunk<float, width> total = sum_of_rows<width>(column, first + slice, slices, last, row);
    if (start == SumStart::present && slices == 1) {
      Chunk<float, width> before;
      before.load(sum + column);
      for (unsigned j = 0; j < width; ++j) total.set(j, total[j] + before[j]);
    }
    total.store(sums_of_slices + slice * columns + column);
  }
  if (slices == 1) return;
  team_barrier(team);
  team_for(team, columns, [=](std::size_t j) {
    float total = start == SumStart::present ? sum[j] : 0.0f;
    for (std::size_t slice = 0; slice < slices; ++slice) total += sums_of_slices[slice * columns + j];
    sum[j] = total;
  });
}

/// The sums of the slices are added in order.
template <SumStart start, class Team, class Row>
KOKKOS_FORCEINLINE_FUNCTION void team_sum_rows(const Team& team, const RowSharing& sharing, std::size_t columns,
                                               std::size_t first, std::size_t last, const Row& row, float* sum) {
  constexpr std::size_t width = chunk_width<decltype(row(0))>;
  if (sharing.aligned && columns % width == 0) {
    team_sum_rows_of<width, start>(team, sharing.slices, columns, first, last, row, sum);
  } else {
    team_sum_rows_of<1, start>(team, sharing.slices, columns, first, last, row, sum);
  }
}

}  // namespace mylos
