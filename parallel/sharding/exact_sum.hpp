#pragma once

#include "core/device.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace mylos::parallel {

/// Sums values of all ranks without rounding, as a fixed-point number with a bit for each power of two in the range of
/// double (Kulisch, Miranker 1981), which is then converted to double, with an error of about one unit in the last
/// place. The result has the same bits for any order of the values and any distribution over ranks. All sums are
/// computed on the device.
///
/// Each rank contributes `bytes` to a sum over ranks, however many values it has. Values must not be negative. A rank
/// may have up to 2^31 of them, and there may be up to 2^20 ranks.
class ExactSum {
 public:
  /// `ranks` must outlive this object.
  explicit ExactSum(Communicator& ranks);

  /// sum (1) = the sum of `values` over all ranks; infinite or NaN if a value is. Collective. `what` describes the sum
  /// over ranks in messages.
  void operator()(const ExecutionSpace& space, const ConstVector<double>& values, const Vector<double>& sum,
                  const std::string& what) const;

  /// The bits of a double, of the number of values of a rank, and of the number of ranks, in limbs of 32 bits.
  static constexpr std::size_t limb_count = (1024 + 1074 + 31 + 20 + 31) / 32;
  /// The limbs as double, and the sum of the values that are not finite.
  static constexpr std::size_t bytes = (limb_count + 1) * sizeof(double);

 private:
  Communicator& ranks_;
  Vector<std::uint64_t> limbs_;  ///< lowest first; the upper half of each collects carries
  Vector<double> elements_;      ///< the array that ranks exchange
};

}  // namespace mylos::parallel
