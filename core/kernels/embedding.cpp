#include "core/kernels/embedding.hpp"

#include "core/error.hpp"
#include "core/kernels/team.hpp"

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
    if (accumulate) return team_for(team, columns, [=](std::size_t i) { out[i] = T(float(out[i]) + float(from[i])); });
    team_for(team, columns, [=](std::size_t i) { out[i] = from[i]; });
  }
};

/// Columns that one team sums: groups are few and long in small tables, so the columns are shared out as well.
constexpr std::size_t gradient_columns = 64;

/// One group's rows over one block of columns.
template <class T>
struct GroupGradient {
  IndexGroups groups;
  ConstMatrix<T> dy;
  Matrix<float> dtable;
  std::size_t column_blocks;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const std::size_t group = task / column_blocks, columns = dy.extent(1);
    const std::size_t begin = task % column_blocks * gradient_columns;
    const std::size_t count = columns - begin < gradient_columns ? columns - begin : gradient_columns;
    float* const sum = dtable.data() + static_cast<std::size_t>(groups.values(group)) * columns + begin;
    const T* const first = dy.data() + begin;
    const std::uint32_t* const rows = groups.rows.data();
    team_add_rows(
        team, count, groups.starts(group), groups.starts(group + 1),
        [=](std::size_t i) { return first + rows[i] * columns; }, sum);
  }
};

}  // namespace

template <class T>
void embedding_lookup(const ExecutionSpace& space, const ConstVector<std::int32_t>& indices,
                      const ConstMatrix<T>& table, bool accumulate, const Matrix<T>& y) {
  require(indices.size() == y.extent(0) && table.extent(1) == y.extent(1),
          fmt::format("embedding: {} indices into {} x {} for {} x {}", indices.size(), table.extent(0),
                      table.extent(1), y.extent(0), y.extent(1)));
  for_each_row("mylos::embedding::lookup", space, y.extent(0), Lookup<T>{indices, table, accumulate, y});
}

template <class T>
void embedding_gradient(const ExecutionSpace& space, const IndexGroups& groups, const ConstMatrix<T>& dy,
                        const Matrix<float>& dtable) {
  require(groups.rows.size() == dy.extent(0) && dtable.extent(1) == dy.extent(1),
          fmt::format("embedding gradient: groups of {} rows and {} x {} for {} x {}", groups.rows.size(), dy.extent(0),
                      dy.extent(1), dtable.extent(0), dtable.extent(1)));
  const std::size_t column_blocks = (dy.extent(1) + gradient_columns - 1) / gradient_columns;
  for_each_row("mylos::embedding::gradient", space, groups.values.size() * column_blocks,
               GroupGradient<T>{groups, dy, dtable, column_blocks});
}

#define MYLOS_INSTANTIATE(T)                                                                                        \
  template void embedding_lookup<T>(const ExecutionSpace&, const ConstVector<std::int32_t>&, const ConstMatrix<T>&, \
                                    bool, const Matrix<T>&);                                                        \
  template void embedding_gradient<T>(const ExecutionSpace&, const IndexGroups&, const ConstMatrix<T>&,             \
                                      const Matrix<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
