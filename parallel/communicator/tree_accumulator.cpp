#include "parallel/communicator/tree_accumulator.hpp"

#include <array>
#include <bit>
#include <utility>

namespace mylos::parallel {

ElementType partial_type(ElementType type) { return type == ElementType::bfloat16 ? ElementType::float32 : type; }

TreeAccumulator::TreeAccumulator(Transport& transport, ElementType type, std::size_t rounds, std::byte* memory,
                                 std::size_t stride)
    : transport_(transport), type_(type), partial_(partial_type(type)), rounds_(rounds) {
  if (rounds == 1) return;
  for (std::size_t level = 0; level < static_cast<std::size_t>(std::bit_width(rounds)); ++level) {
    sums_.push_back(memory + level * stride);
  }
  is_there_.resize(sums_.size());
}

void TreeAccumulator::add(std::size_t round, std::span<const void* const> parts, std::size_t count,
                          const Result& result) {
  if (rounds_ == 1) return transport_.sum(type_, parts, count, result.type, result.sums);
  const auto level = static_cast<std::size_t>(std::countr_one(round));
  bool there = !parts.empty();
  if (there) transport_.sum(type_, parts, count, partial_, sums_[level]);
  for (std::size_t below = 0; below < level; ++below) {
    if (!is_there_[below]) continue;
    is_there_[below] = false;
    if (there) {
      const std::array<const void*, 2> both{sums_[below], sums_[level]};
      transport_.sum(partial_, both, count, partial_, sums_[level]);
    } else {
      std::swap(sums_[below], sums_[level]);
      there = true;
    }
  }
  is_there_[level] = there;
  if (round + 1 < rounds_) return;
  is_there_[level] = false;
  const std::array<const void*, 1> all{sums_[level]};
  transport_.sum(partial_, all, count, result.type, result.sums);
}

}  // namespace mylos::parallel
