#include "core/kernels/largest_column.hpp"

#include "core/base/error.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

struct LargestColumn {
  ConstMatrix<float> x;
  Vector<float> largest;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const std::size_t columns = x.extent(1);
    const float* const in = x.data() + row * columns;
    const float best = team_max(team, columns, [=](std::size_t i) { return in[i]; });
    const float first = team_max(team, columns, [=](std::size_t i) {
      return in[i] == best ? -static_cast<float>(i) : -Kokkos::Experimental::infinity_v<float>;
    });
    largest(row) = first <= 0.0f && first > -Kokkos::Experimental::infinity_v<float> ? -first : 0.0f;
  }
};

}  // namespace

void largest_column(const ExecutionSpace& space, const ConstMatrix<float>& x, const Vector<float>& largest) {
  require(largest.size() == x.extent(0),
          fmt::format("largest_column: {} results for {} rows", largest.size(), x.extent(0)));
  for_each_row(with_work("mylos::largest_column",
                         work_of(x.size(), 2.0, sizeof(float)) + work_of(x.extent(0), 0.0, sizeof(float))),
               space, x.extent(0), LargestColumn{x, largest});
}

}  // namespace mylos
