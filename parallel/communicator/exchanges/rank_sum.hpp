#pragma once

#include "core/base/error.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace mylos::parallel {

/// Types of a sum over ranks: those of the arrays, of the additions, and of the result.
template <class PartType, class SumType, class ResultType>
struct SumTypes {
  using Part = PartType;
  using Sum = SumType;
  using Result = ResultType;
};

/// Calls `call` with the SumTypes of a sum over arrays of `type`. bfloat16 is summed in float, and rounded if
/// `sum_type` is bfloat16 too; float arrays may also be rounded to bfloat16. Errors: std::invalid_argument for bytes.
template <class Call>
void with_sum_types(ElementType type, ElementType sum_type, const Call& call) {
  const bool rounds = sum_type == ElementType::bfloat16;
  switch (type) {
    case ElementType::float32:
      return rounds ? call(SumTypes<float, float, bfloat16>()) : call(SumTypes<float, float, float>());
    case ElementType::float64:
      return call(SumTypes<double, double, double>());
    // Unsigned integers give the same bits, and their overflow is defined.
    case ElementType::int64:
      return call(SumTypes<std::uint64_t, std::uint64_t, std::uint64_t>());
    case ElementType::bfloat16:
      return rounds ? call(SumTypes<bfloat16, float, bfloat16>()) : call(SumTypes<bfloat16, float, float>());
    case ElementType::byte:
      break;
  }
  require(false, "bytes have no sum");
}

/// Computes sums[i] = the sum over ranks of parts[rank][i] for i in [0, count), in the order that Communicator
/// promises: ((0 + 1) + (2 + 3)) + ...; a last odd one is carried up. All memory is on the host; `sums` may alias one
/// of the parts. For types and errors see with_sum_types.
void sum_over_ranks(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                    void* sums);

}  // namespace mylos::parallel
