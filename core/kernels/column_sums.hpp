#pragma once

#include "core/kernels/team.hpp"

/// Sums over the rows of a matrix that are the same for any number of threads: rows are cut into blocks of fixed size,
/// a team sums each block into a row of partial sums, and those are added in order.
namespace mylos {

/// Rows a block holds.
inline constexpr std::size_t column_sum_rows = 32;

inline std::size_t column_sum_blocks(std::size_t rows) { return (rows + column_sum_rows - 1) / column_sum_rows; }

/// Where matrix `index` of partial sums (blocks, columns) stands in a workspace of column_sum_workspace floats.
Matrix<float> partial_sums(const Vector<float>& workspace, std::size_t index, std::size_t rows, std::size_t columns);

/// sums (N) += the sum of partial (blocks, N) over blocks, in order.
void add_partial_sums(const ExecutionSpace& space, const ConstMatrix<float>& partial, const Vector<float>& sums);

}  // namespace mylos
