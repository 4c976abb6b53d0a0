#include "parallel/communicator/exchanges/device_rank_sum.hpp"

#include "parallel/communicator/exchanges/rank_sum.hpp"

namespace mylos::parallel {
namespace {

/// Loops have constant bounds so that values stay in registers.
template <class Part, class Sum, class Result>
struct SumOverParts {
  const Part* part[most_parts];
  std::size_t parts;
  Result* sums;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i) const {
    Sum value[most_parts];
    for (std::size_t k = 0; k < most_parts; ++k) value[k] = k < parts ? static_cast<Sum>(part[k][i]) : Sum();
    for (std::size_t step = 1; step < most_parts; step *= 2) {
      for (std::size_t k = 0; k + step < most_parts; k += 2 * step) {
        if (k + step < parts) value[k] = value[k] + value[k + step];
      }
    }
    sums[i] = static_cast<Result>(value[0]);
  }
};

template <class Part, class Sum, class Result>
void launch_over_parts(const ExecutionSpace& space, const DeviceParts& parts, std::size_t count, void* sums) {
  SumOverParts<Part, Sum, Result> sum{{}, parts.count, static_cast<Result*>(sums)};
  for (std::size_t k = 0; k < parts.count; ++k) sum.part[k] = static_cast<const Part*>(parts.part[k]);
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>;
  Kokkos::parallel_for("mylos::communicator::sum_over_ranks", Range(space, 0, count), sum);
}

}  // namespace

void sum_over_ranks(const ExecutionSpace& space, ElementType type, const DeviceParts& parts, std::size_t count,
                    ElementType sum_type, void* sums) {
  with_sum_types(type, sum_type, [&](auto types) {
    using Types = decltype(types);
    launch_over_parts<typename Types::Part, typename Types::Sum, typename Types::Result>(space, parts, count, sums);
  });
}

}  // namespace mylos::parallel
