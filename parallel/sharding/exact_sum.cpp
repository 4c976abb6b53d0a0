#include "parallel/sharding/exact_sum.hpp"

#include "core/base/error.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

constexpr int limb_bits = 32, fraction_bits = 52, lowest_exponent = -1074;
constexpr std::uint64_t limb_mask = (std::uint64_t{1} << limb_bits) - 1;
constexpr std::size_t limb_count = ExactSum::limb_count;

/// Integers are added in any order without changing a bit.
struct AddToLimbs {
  const double* values;
  std::uint64_t* limbs;
  double* not_finite;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i) const {
    const double value = values[i];
    if (!Kokkos::isfinite(value)) return Kokkos::atomic_add(not_finite, value);
    const auto bits = Kokkos::bit_cast<std::uint64_t>(value);
    const std::uint64_t exponent = bits >> fraction_bits & 0x7ff, fraction = bits << 12 >> 12;
    const bool is_normal = exponent > 0;
    const std::uint64_t significand = is_normal ? fraction | std::uint64_t{1} << fraction_bits : fraction;
    const std::uint64_t first_bit = is_normal ? exponent - 1 : 0, shift = first_bit % limb_bits;
    const std::uint64_t low = (significand & limb_mask) << shift, high = (significand >> limb_bits) << shift;
    std::uint64_t* const limb = limbs + first_bit / limb_bits;
    Kokkos::atomic_add(limb, low & limb_mask);
    Kokkos::atomic_add(limb + 1, (low >> limb_bits) + (high & limb_mask));
    Kokkos::atomic_add(limb + 2, high >> limb_bits);
  }
};

KOKKOS_INLINE_FUNCTION void propagate_carries(std::uint64_t* limbs) {
  for (std::size_t i = 0; i + 1 < limb_count; ++i) {
    limbs[i + 1] += limbs[i] >> limb_bits;
    limbs[i] &= limb_mask;
  }
}

/// A limb then has 32 bits, so sums of up to 2^20 of them as double, which has 53 bits, are exact in any order.
struct LimbsToElements {
  std::uint64_t* limbs;
  double* elements;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t) const {
    propagate_carries(limbs);
    for (std::size_t i = 0; i < limb_count; ++i) elements[i] = static_cast<double>(limbs[i]);
  }
};

/// The exponent must be that of a normal number.
KOKKOS_INLINE_FUNCTION double power_of_two(int exponent) {
  return Kokkos::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << fraction_bits);
}

struct ElementsToSum {
  const double* elements;
  std::uint64_t* limbs;
  double* sum;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t) const {
    if (elements[limb_count] != 0.0) {
      *sum = elements[limb_count];
      return;
    }
    for (std::size_t i = 0; i < limb_count; ++i) limbs[i] = static_cast<std::uint64_t>(elements[i]);
    propagate_carries(limbs);
    double all = 0.0;
    for (std::size_t i = limb_count; i-- > 0;) {
      // The power itself may be outside the range of double.
      const int exponent = limb_bits * static_cast<int>(i) + lowest_exponent, half = exponent / 2;
      all += static_cast<double>(limbs[i]) * power_of_two(half) * power_of_two(exponent - half);
    }
    *sum = all;
  }
};

/// Calls body(0) on the device, by one thread.
template <class Body>
void once(const char* name, const ExecutionSpace& space, const Body& body) {
  for_each_element(with_work(name, work_of(limb_count, 4.0, 3.0 * sizeof(double))), space, 1, body);
}

}  // namespace

ExactSum::ExactSum(Communicator& ranks)
    : ranks_(ranks),
      limbs_("mylos::ExactSum::limbs", limb_count),
      elements_("mylos::ExactSum::elements", limb_count + 1) {}

void ExactSum::operator()(const ExecutionSpace& space, const ConstVector<double>& values, const Vector<double>& sum,
                          const std::string& what) const {
  require(sum.size() == 1, fmt::format("exact sum of {} values: room for {} sums", values.size(), sum.size()));
  Kokkos::deep_copy(space, limbs_, std::uint64_t{0});
  Kokkos::deep_copy(space, elements_, 0.0);
  for_each_element(with_work("mylos::ExactSum::values", work_of(values.size(), 6.0, sizeof(double))), space,
                   values.size(), AddToLimbs{values.data(), limbs_.data(), elements_.data() + limb_count});
  once("mylos::ExactSum::elements", space, LimbsToElements{limbs_.data(), elements_.data()});
  ranks_.all_reduce(space, {elements_.data(), elements_.size(), ElementType::float64}, what).wait(space);
  once("mylos::ExactSum::sum", space, ElementsToSum{elements_.data(), limbs_.data(), sum.data()});
}

}  // namespace mylos::parallel
