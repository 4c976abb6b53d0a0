#include "core/kernels/embedding.hpp"

#include "core/base/error.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

template <class T>
struct Lookup {
  ConstVector<std::int32_t> indices;
  ConstMatrix<T> table;
  bool accumulate;
  Matrix<T> y;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = y.extent(1);
    const T* const from = table.data() + static_cast<std::size_t>(indices(row)) * columns;
    T* const out = y.data() + row * columns;
    if (accumulate) {
      team_map(
          team, columns, [](const T& value, T& sum) { sum = T(float(sum) + float(value)); }, from, out);
    } else {
      team_map(
          team, columns, [](const T& value, T& copy) { copy = value; }, from, written(out));
    }
  }
};

/// Columns are distributed over teams too, because small tables have few, long groups. On a device, long groups (such
/// as the two segments) use many threads per column; otherwise (tokens) fewer, since most groups have one or a few
/// rows.
RowSharing gradient_sharing(const IndexGroups& groups) {
  if (!kernels_in_teams) return {.columns = 64};
  const bool are_long = groups.rows.size() > 64 * groups.values.size();
  return are_long ? RowSharing{.columns = 16, .slices = 64} : RowSharing{.columns = 128, .slices = 8};
}

/// Sums one group's rows over one block of columns.
template <class T>
struct GroupGradient {
  IndexGroups groups;
  ConstMatrix<T> dy;
  Matrix<float> dtable;
  std::size_t column_blocks;
  RowSharing sharing;
  std::int32_t padding;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t group = task / column_blocks, columns = dy.extent(1);
    if (groups.values(group) == padding) return;
    const std::size_t begin = task % column_blocks * sharing.columns;
    const std::size_t count = columns - begin < sharing.columns ? columns - begin : sharing.columns;
    float* const sum = dtable.data() + static_cast<std::size_t>(groups.values(group)) * columns + begin;
    const T* const first = dy.data() + begin;
    const std::uint32_t* const rows = groups.rows.data();
    team_sum_rows<SumStart::present>(
        team, sharing, count, groups.starts(group), groups.starts(group + 1),
        [=](std::size_t i) { return first + rows[i] * columns; }, sum);
  }
};

/// The first look-up writes, others read and write; each table row that occurs is read once.
template <class T>
std::optional<Work> lookup_work(const Matrix<T>& y, bool accumulate, std::size_t distinct) {
  if (distinct == 0) return std::nullopt;
  const double sums = accumulate ? 1.0 : 0.0;
  return work_of(y.size(), sums, (1.0 + sums) * sizeof(T)) + work_of(distinct * y.extent(1), 0.0, sizeof(T));
}

}  // namespace

template <class T>
void embedding_lookup(const ExecutionSpace& space, const ConstVector<std::int32_t>& indices,
                      const ConstMatrix<T>& table, bool accumulate, const Matrix<T>& y, std::size_t distinct) {
  require(indices.size() == y.extent(0) && table.extent(1) == y.extent(1),
          fmt::format("embedding: {} indices into {} x {} for {} x {}", indices.size(), table.extent(0),
                      table.extent(1), y.extent(0), y.extent(1)));
  for_each_row(with_work("mylos::embedding::lookup", lookup_work(y, accumulate, distinct)), space, y.extent(0),
               Lookup<T>{indices, table, accumulate, y}, team_of_row<T>(space, y.extent(1)));
}

template <class T>
void embedding_gradient(const ExecutionSpace& space, const IndexGroups& groups, const ConstMatrix<T>& dy,
                        const Matrix<float>& dtable, std::int32_t padding) {
  require(groups.rows.size() == dy.extent(0) && dtable.extent(1) == dy.extent(1),
          fmt::format("embedding gradient: groups of {} rows and {} x {} for {} x {}", groups.rows.size(), dy.extent(0),
                      dy.extent(1), dtable.extent(0), dtable.extent(1)));
  RowSharing sharing = gradient_sharing(groups);
  sharing.aligned = dy.extent(1) * sizeof(T) % access_bytes == 0 && are_aligned(dy.data(), dtable.data());
  const std::size_t column_blocks = (dy.extent(1) + sharing.columns - 1) / sharing.columns;
  const Work work =
      work_of(dy.size(), 1.0, sizeof(T)) + work_of(groups.values.size() * dy.extent(1), 0.0, 2.0 * sizeof(float));
  for_each_row(with_work("mylos::embedding::gradient", work), space, groups.values.size() * column_blocks,
               GroupGradient<T>{groups, dy, dtable, column_blocks, sharing, padding},
               sharing.shape(space, access_bytes / sizeof(T)));
}

#define MYLOS_INSTANTIATE(T)                                                                                        \
  template void embedding_lookup<T>(const ExecutionSpace&, const ConstVector<std::int32_t>&, const ConstMatrix<T>&, \
                                    bool, const Matrix<T>&, std::size_t);                                           \
  template void embedding_gradient<T>(const ExecutionSpace&, const IndexGroups&, const ConstMatrix<T>&,             \
                                      const Matrix<float>&, std::int32_t);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
