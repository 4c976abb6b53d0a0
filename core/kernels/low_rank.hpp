#pragma once

#include "core/kernels/dropout.hpp"

#include <Kokkos_Array.hpp>

/// Low-rank adapters of linear layers that are stacked (Hu et al. 2021): y (T, N) += x A^T U^T, where A (R, K) has the
/// rows of all adapters, and U (N, R) is zero but for a block scale B of each adapter. So one product with A and one
/// with U serve all layers that read x.
namespace mylos {

/// The block of one adapter, B (rows, rank), at (first_row, first_column) of U.
struct LowRankBlock {
  std::size_t first_row = 0, rows = 0;
  std::size_t first_column = 0, rank = 0;
  float scale = 1.0f;
};
/// Layers that are stacked at most.
inline constexpr std::size_t most_low_rank_blocks = 4;
struct LowRankBlocks {
  Kokkos::Array<LowRankBlock, most_low_rank_blocks> block = {};
  std::size_t count = 0;
};

template <class T>
using BlockValues = Kokkos::Array<ConstVector<T>, most_low_rank_blocks>;
using BlockGradients = Kokkos::Array<Vector<float>, most_low_rank_blocks>;

/// u (N, R) = the blocks scale B, and zeros.
template <class T>
void place_low_rank(const ExecutionSpace& space, const LowRankBlocks& blocks, const BlockValues<T>& b,
                    const Matrix<T>& u);
/// dB += scale * its block of du (N, R), for each adapter.
void add_low_rank_gradients(const ExecutionSpace& space, const LowRankBlocks& blocks, const ConstMatrix<float>& du,
                            const BlockGradients& db);

/// y (T, K) = dropout(x), or y += dropout(x) if `adds`.
template <class T>
void dropout(const ExecutionSpace& space, const DropoutKey& key, const DropoutRows& rows, const ConstMatrix<T>& x,
             const Matrix<T>& y, bool adds = false);

}  // namespace mylos
