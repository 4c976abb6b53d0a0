#include "parallel/sharding/block_sum.hpp"

#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <algorithm>
#include <bit>

namespace mylos::parallel {
namespace {

using Subtree = TreeBlockSum::Subtree;
using Addition = TreeBlockSum::Addition;

/// Lists the additions that join the subtrees of a unit, which are given from left to right.
class UnitSum {
 public:
  explicit UnitSum(std::vector<Addition>& additions) : additions_(additions) {}

  /// `node` is the index of the subtree's sum.
  void add(BlockSubtree subtree, std::size_t node) {
    waiting_.push_back({subtree, node});
    while (waiting_.size() > 1 && are_siblings(waiting_[waiting_.size() - 2].subtree, waiting_.back().subtree)) {
      join_last();
      waiting_.back().subtree.size *= 2;
    }
  }
  /// Joins all subtrees. Returns the index of the unit's sum; nullopt if there are none.
  std::optional<std::size_t> total() {
    while (waiting_.size() > 1) join_last();
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().node);
  }

 private:
  static bool are_siblings(const BlockSubtree& left, const BlockSubtree& right) {
    return left.size == right.size && left.begin % (2 * left.size) == 0;
  }
  void join_last() {
    const std::size_t right = waiting_.back().node;
    waiting_.pop_back();
    additions_.push_back({waiting_.back().node, right});
  }
  struct Waiting {
    BlockSubtree subtree;
    std::size_t node;
  };
  std::vector<Addition>& additions_;
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

/// Sums each subtree as a balanced tree, in place: neighbours, then neighbouring pairs and so on.
struct SumSubtrees {
  ConstVector<Subtree> subtrees;
  Vector<double> values, sums;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t index) const {
    const Subtree subtree = subtrees(index);
    double* const block = values.data() + subtree.first;
    for (std::size_t step = 1; step < subtree.size; step *= 2) {
      team_for(team, subtree.size / (2 * step),
               [=](std::size_t i) { block[2 * step * i] += block[2 * step * i + step]; });
      team_barrier(team);
    }
    sums(index) = block[0];
  }
};

/// The additions depend on one another, so one thread makes them all.
struct JoinSums {
  ConstVector<Addition> additions;
  Vector<double> sums, sum;
  std::size_t all;

  void operator()(const HostTeam&, std::size_t) const { join(); }
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t) const {
    if (team.team_rank() == 0) join();
  }

 private:
  KOKKOS_INLINE_FUNCTION void join() const {
    for (std::size_t i = 0; i < additions.size(); ++i) sums(additions(i).left) += sums(additions(i).right);
    sum(0) = sums.size() > 0 ? sums(all) : 0.0;
  }
};

template <class T>
Vector<T> on_device(const char* label, const std::vector<T>& values) {
  const Vector<T> device = uninitialized<T>(label, values.size());
  using HostValues = Kokkos::View<const T*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;
  Kokkos::deep_copy(device, HostValues(values.data(), values.size()));
  return device;
}

Buffer buffer_of_doubles(const Vector<double>& vector) {
  return {vector.data(), vector.size(), ElementType::float64, MemoryKind::device};
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

std::size_t TreeBlockSum::sums_sent(const ParameterTable& table, std::size_t ranks) {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    most = std::max(most, for_each_subtree(table, rank, ranks, [](auto...) {}));
  }
  return most;
}

TreeBlockSum::TreeBlockSum(Communicator& ranks, const ParameterTable& table)
    : ranks_(ranks), most_(sums_sent(table, ranks.size())) {
  std::vector<Subtree> own;
  std::size_t values = 0;
  for_each_subtree(table, ranks.rank(), ranks.size(),
                   [&](std::size_t, const BlockSubtree& subtree, std::size_t first, std::size_t) {
                     own.push_back({first, subtree.size});
                     values = first + subtree.size;
                   });
  std::vector<Addition> additions;
  std::vector<UnitSum> units(table.units().size(), UnitSum(additions));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for_each_subtree(table, rank, ranks.size(),
                     [&](std::size_t unit, const BlockSubtree& subtree, std::size_t, std::size_t index) {
                       units[unit].add(subtree, rank * most_ + index);
                     });
  }
  for (UnitSum& unit : units) {
    const std::optional<std::size_t> sum = unit.total();
    if (sum && all_) additions.push_back({*all_, *sum});
    if (!all_) all_ = sum;
  }
  subtrees_ = on_device("mylos::TreeBlockSum::subtrees", own);
  additions_ = on_device("mylos::TreeBlockSum::additions", additions);
  values_ = Vector<double>("mylos::TreeBlockSum::values", values);
  sums_ = Vector<double>("mylos::TreeBlockSum::sums", most_ * ranks.size());
}

void TreeBlockSum::operator()(const ExecutionSpace& space, const ConstVector<double>& values,
                              const Vector<double>& sum) const {
  Kokkos::deep_copy(space, values_, slice(values, 0, values_.size()));
  const Vector<double> mine = slice(sums_, most_ * ranks_.rank(), most_ * (ranks_.rank() + 1));
  for_each_row(with_work("mylos::TreeBlockSum::subtrees", work_of(values_.size(), 1.0, 2.0 * sizeof(double))), space,
               subtrees_.size(), SumSubtrees{subtrees_, values_, mine});
  ranks_.all_gather(space, buffer_of_doubles(mine), buffer_of_doubles(sums_), "norm of the gradients").wait(space);
  for_each_row(with_work("mylos::TreeBlockSum::units", work_of(additions_.size(), 1.0, 3.0 * sizeof(double))), space, 1,
               JoinSums{additions_, sums_, sum, all_.value_or(0)}, {.threads = team_size_for(space, 1)});
}

}  // namespace mylos::parallel
