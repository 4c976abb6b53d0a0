#include "parallel/communicator/device_rank_sum.hpp"

#include "core/base/error.hpp"

#include <cstdint>

namespace mylos::parallel {
namespace {

template <class Part, class Sum, class Result>
struct SumOverRanks {
  const Part* own;
  const Part* received;
  std::size_t stride, rank, ranks;
  Result* sums;

  KOKKOS_INLINE_FUNCTION Sum value(std::size_t of_rank, std::size_t i) const {
    if (of_rank == rank) return static_cast<Sum>(own[i]);
    const std::size_t place = of_rank < rank ? of_rank : of_rank - 1;
    return static_cast<Sum>(received[place * stride + i]);
  }
  /// What tree_sum asks for one element; nvcc allows no lambda here.
  struct Element {
    const SumOverRanks& sum;
    std::size_t i;
    KOKKOS_INLINE_FUNCTION Sum operator()(std::size_t of_rank) const { return sum.value(of_rank, i); }
  };
  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i) const {
    sums[i] = static_cast<Result>(tree_sum<Sum>(ranks, Element{*this, i}));
  }
};

template <class Part, class Sum, class Result>
void launch(const ExecutionSpace& space, const RankParts& parts, std::size_t count, void* sums) {
  const SumOverRanks<Part, Sum, Result> sum{static_cast<const Part*>(parts.own),
                                            static_cast<const Part*>(parts.received),
                                            parts.stride,
                                            parts.rank,
                                            parts.ranks,
                                            static_cast<Result*>(sums)};
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>;
  Kokkos::parallel_for("mylos::communicator::sum_over_ranks", Range(space, 0, count), sum);
}

}  // namespace

void sum_over_ranks(const ExecutionSpace& space, ElementType type, const RankParts& parts, std::size_t count,
                    ElementType sum_type, void* sums) {
  switch (type) {
    case ElementType::float32:
      return launch<float, float, float>(space, parts, count, sums);
    case ElementType::float64:
      return launch<double, double, double>(space, parts, count, sums);
    // Unsigned: the same bits, and an overflow is defined.
    case ElementType::int64:
      return launch<std::uint64_t, std::uint64_t, std::uint64_t>(space, parts, count, sums);
    case ElementType::bfloat16:
      if (sum_type == ElementType::float32) return launch<bfloat16, float, float>(space, parts, count, sums);
      return launch<bfloat16, float, bfloat16>(space, parts, count, sums);
    case ElementType::byte:
      break;
  }
  require(false, "bytes have no sum");
}

}  // namespace mylos::parallel
