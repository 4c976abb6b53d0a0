#pragma once

#include "core/parameters.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace mylos::parallel {

/// Complete subtrees of a balanced binary tree over blocks that together cover [begin, end), from left to right. Each
/// begins at a multiple of its size, a power of two. There are at most about 2 log2 of the number of blocks.
struct BlockSubtree {
  std::size_t begin = 0, size = 1;
};
std::vector<BlockSubtree> whole_subtrees(std::size_t begin, std::size_t end);

/// Sums values over all ranks, one value for each block of each rank's slices (ShardingStrategy::sum_of_blocks). Each
/// unit is summed as a balanced binary tree over its blocks, regardless of how slices are cut; then units are added in
/// order. A rank sums its complete subtrees and sends only these sums. All sums are computed on the device.
class TreeBlockSum {
 public:
  /// `ranks` must outlive this object.
  TreeBlockSum(Communicator& ranks, const ParameterTable& table);
  /// Returns how many sums each of `ranks` ranks sends: the number of subtrees of the rank that has most.
  static std::size_t sums_sent(const ParameterTable& table, std::size_t ranks);

  /// sum (1) = the sum of `values` over all ranks. Collective; the result has the same bits on every rank and for any
  /// number of ranks.
  void operator()(const ExecutionSpace& space, const ConstVector<double>& values, const Vector<double>& sum) const;

  /// Elements [first, first + size) of a rank's values, which form a complete subtree.
  struct Subtree {
    std::size_t first = 0, size = 1;
  };
  /// Adds the sum at index `right` to that at `left`.
  struct Addition {
    std::size_t left = 0, right = 0;
  };

 private:
  Communicator& ranks_;
  std::size_t most_;                ///< sums_sent
  Vector<Subtree> subtrees_;        ///< of this rank
  Vector<double> values_;           ///< a copy of the values, whose subtrees are summed in place
  Vector<double> sums_;             ///< (ranks, most_) sums of all subtrees
  Vector<Addition> additions_;      ///< of these sums, in order
  std::optional<std::size_t> all_;  ///< index of the total among them; nullopt if there are none
};

}  // namespace mylos::parallel
