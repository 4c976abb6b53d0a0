#include "core/kernels/column_sums.hpp"

#include "core/base/error.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// A host thread sums 64 columns, a few vectors of one cache line of partial sums each. A device team sums 32 columns
/// and splits the blocks among its threads, because there are far fewer columns than device threads.
constexpr RowSharing partial_sum_sharing = {.columns = kernels_in_teams ? 32u : 64u, .slices = 16};

constexpr std::size_t most_at_once = 3;

struct AddPartialSums {
  PartialSums all[most_at_once];
  std::size_t groups;  ///< column groups
  RowSharing split;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const PartialSums& mine = all[task / groups];
    const std::size_t begin = task % groups * split.columns, rest = mine.sums.size() - begin;
    const std::size_t columns = mine.partial.extent(1);
    const float* const first = mine.partial.data() + begin;
    team_sum_rows<SumStart::present>(
        team, split, rest < split.columns ? rest : split.columns, 0, mine.partial.extent(0),
        [=](std::size_t block) { return first + block * columns; }, mine.sums.data() + begin);
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

void add_partial_sums(const ExecutionSpace& space, std::initializer_list<PartialSums> all) {
  const std::size_t columns = all.begin()->sums.size();
  AddPartialSums add{
      {}, (columns + partial_sum_sharing.columns - 1) / partial_sum_sharing.columns, partial_sum_sharing};
  add.split.aligned = columns * sizeof(float) % access_bytes == 0;
  std::size_t count = 0;
  for (const PartialSums& one : all) {
    require(count < most_at_once && one.sums.size() == columns && one.partial.extent(1) == columns,
            fmt::format("partial sums {} of {}: {} columns for {} of the first", count + 1, all.size(),
                        one.partial.extent(1), columns));
    add.split.aligned = add.split.aligned && are_aligned(one.partial.data(), one.sums.data());
    add.all[count++] = one;
  }
  const std::size_t elements = count * all.begin()->partial.size();
  for_each_row(with_work("mylos::column_sums::add", work_of(elements, 1.0, sizeof(float))), space, count * add.groups,
               add, partial_sum_sharing.shape(space, 4));
}

}  // namespace mylos
