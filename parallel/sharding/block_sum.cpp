#include "parallel/sharding/block_sum.hpp"

#include <algorithm>
#include <bit>

namespace mylos::parallel {
namespace {

/// Sums 2^n values as a balanced tree.
double balanced_sum(std::span<const double> values) {
  if (values.size() == 1) return values.front();
  const std::size_t half = values.size() / 2;
  return balanced_sum(values.first(half)) + balanced_sum(values.subspan(half));
}

/// Joins the subtrees of a unit, which are added from left to right.
class UnitSum {
 public:
  void add(BlockSubtree subtree, double sum) {
    waiting_.push_back({subtree, sum});
    while (waiting_.size() > 1 && are_siblings(waiting_[waiting_.size() - 2].subtree, waiting_.back().subtree)) {
      const double right = waiting_.back().sum;
      waiting_.pop_back();
      waiting_.back().sum += right;
      waiting_.back().subtree.size *= 2;
    }
  }
  double total() const {
    double sum = 0.0;
    for (auto each = waiting_.rbegin(); each != waiting_.rend(); ++each) {
      sum = each == waiting_.rbegin() ? each->sum : each->sum + sum;
    }
    return sum;
  }

 private:
  static bool are_siblings(const BlockSubtree& left, const BlockSubtree& right) {
    return left.size == right.size && left.begin % (2 * left.size) == 0;
  }
  struct Waiting {
    BlockSubtree subtree;
    double sum;
  };
  std::vector<Waiting> waiting_;
};

/// The blocks of a unit that a rank owns. Blocks beyond the unit are padding, which is zero.
struct OwnBlocks {
  std::size_t begin, end, all;  ///< `all` includes the padding
};
OwnBlocks own_blocks(std::size_t size, std::size_t rank, std::size_t ranks) {
  const auto blocks_of = [](std::size_t elements) { return (elements + slice_block - 1) / slice_block; };
  const std::size_t slice = blocks_of(shard_size(size, ranks)), blocks = blocks_of(size);
  return {std::min(rank * slice, blocks), std::min((rank + 1) * slice, blocks), slice};
}

/// Calls use(unit, subtree, first, index) for each subtree of each unit that a rank owns. Returns the number of
/// subtrees.
template <class Use>
std::size_t for_each_subtree(const ParameterTable& table, std::size_t rank, std::size_t ranks, const Use& use) {
  std::size_t count = 0, first = 0;  // `first` is an index into the rank's values
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    const OwnBlocks own = own_blocks(table.units()[unit].size, rank, ranks);
    for (const BlockSubtree& subtree : whole_subtrees(own.begin, own.end)) {
      use(unit, subtree, first + subtree.begin - own.begin, count++);
    }
    first += own.all;
  }
  return count;
}

}  // namespace

std::vector<BlockSubtree> whole_subtrees(std::size_t begin, std::size_t end) {
  std::vector<BlockSubtree> subtrees;
  while (begin < end) {
    const std::size_t fitting = std::bit_floor(end - begin);
    const std::size_t size = begin == 0 ? fitting : std::min(fitting, begin & (~begin + 1));
    subtrees.push_back({begin, size});
    begin += size;
  }
  return subtrees;
}

double tree_sum_of_blocks(Communicator& ranks, const ParameterTable& table, std::span<const double> values) {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    most = std::max(most, for_each_subtree(table, rank, ranks.size(), [](auto...) {}));
  }
  std::vector<double> all(most * ranks.size());
  const std::span<double> mine = std::span(all).subspan(most * ranks.rank(), most);
  for_each_subtree(table, ranks.rank(), ranks.size(),
                   [&](std::size_t, const BlockSubtree& subtree, std::size_t first, std::size_t index) {
                     mine[index] = balanced_sum(values.subspan(first, subtree.size));
                   });
  ranks
      .all_gather({}, {mine.data(), mine.size(), ElementType::float64, MemoryKind::host},
                  {all.data(), all.size(), ElementType::float64, MemoryKind::host}, "norm of the gradients")
      .wait({});
  std::vector<UnitSum> sums(table.units().size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for_each_subtree(table, rank, ranks.size(),
                     [&](std::size_t unit, const BlockSubtree& subtree, std::size_t, std::size_t index) {
                       sums[unit].add(subtree, all[rank * most + index]);
                     });
  }
  double sum = 0.0;
  for (const UnitSum& unit : sums) sum += unit.total();
  return sum;
}

}  // namespace mylos::parallel
