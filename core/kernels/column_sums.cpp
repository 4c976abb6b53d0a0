#include "core/kernels/column_sums.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// Columns a team adds up: a cache line of partial sums for each of a few host vectors.
constexpr std::size_t columns_at_once = 64;

struct AddPartialSums {
  ConstMatrix<float> partial;
  Vector<float> sums;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t group) const {
    const std::size_t begin = group * columns_at_once, rest = sums.size() - begin;
    const std::size_t blocks = partial.extent(0), columns = partial.extent(1);
    const float* const first = partial.data() + begin;
    team_add_rows(
        team, rest < columns_at_once ? rest : columns_at_once, 0, blocks,
        [=](std::size_t block) { return first + block * columns; }, sums.data() + begin);
  }
};

}  // namespace

Matrix<float> partial_sums(const Vector<float>& workspace, std::size_t index, std::size_t rows, std::size_t columns) {
  const std::size_t size = column_sum_blocks(rows) * columns;
  require((index + 1) * size <= workspace.size(),
          fmt::format("column sums of {} x {}: the workspace has {} floats, {} are needed", rows, columns,
                      workspace.size(), (index + 1) * size));
  return as_matrix(slice(workspace, index * size, (index + 1) * size), column_sum_blocks(rows), columns);
}

void add_partial_sums(const ExecutionSpace& space, const ConstMatrix<float>& partial, const Vector<float>& sums) {
  for_each_row("mylos::column_sums::add", space, (sums.size() + columns_at_once - 1) / columns_at_once,
               AddPartialSums{partial, sums});
}

}  // namespace mylos
