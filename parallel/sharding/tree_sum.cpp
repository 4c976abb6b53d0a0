#include "parallel/sharding/tree_sum.hpp"

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"

#include <fmt/format.h>

#include <bit>

namespace mylos::parallel {

std::size_t TreeSum::levels(std::size_t count) { return static_cast<std::size_t>(std::bit_width(count)) - 1; }

TreeSum::TreeSum(const std::string& label, std::size_t size, std::size_t count) : count_(count) {
  require(std::has_single_bit(count), fmt::format("tree sum of {} arrays: not a power of two", count));
  for (std::size_t level = 0; level < levels(count); ++level) partial_.push_back(uninitialized<float>(label, size));
}

void TreeSum::add(const ExecutionSpace& space, const Vector<float>& array, const Vector<float>& sum) {
  // The set bits of added_ are the levels whose partial sums wait for a neighbour.
  std::size_t level = 0;
  for (; (added_ >> level & 1u) != 0; ++level) mylos::add(space, partial_[level], array);
  added_ = (added_ + 1) % count_;
  const Vector<float> target = added_ == 0 ? sum : partial_[level];
  if (target.data() != array.data()) Kokkos::deep_copy(space, target, array);
}

}  // namespace mylos::parallel
