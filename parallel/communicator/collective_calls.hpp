#pragma once

#include "parallel/communicator/exchanges.hpp"

#include <compare>
#include <cstddef>
#include <memory>
#include <vector>

/// The collective calls of one rank, recorded without the other ranks. With counting_transport.hpp they give the
/// messages that a program would send on more ranks than any available machine has.
namespace mylos::parallel {

/// A call of Communicator that all ranks of a group make with the same values.
struct CollectiveCall {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, gather };
  Kind kind = Kind::all_reduce;
  std::size_t count = 0;  ///< elements of the whole array
  std::size_t part = 0;   ///< elements of a rank's part; 0 if the array is divided evenly
  ElementType type = ElementType::float32;
  ElementType sum_type = ElementType::float32;  ///< of the result of a reduce_scatter
  std::size_t root = 0;                         ///< of a broadcast or a gather
  std::size_t group = 0;                        ///< index into CallRecorder::groups

  friend auto operator<=>(const CollectiveCall&, const CollectiveCall&) = default;
};

/// Returns one rank's part of a call with MPI's algorithms. `array` stands for the whole array, and for the rank's part
/// of it; it must outlive the exchange.
std::unique_ptr<Exchange> make_exchange(const CollectiveCall& call, Transport& transport, const RankGroup& group,
                                        const ExchangeRules& rules, std::byte* array);

/// Provides one rank's communicators. Their operations are done at once, leave all arrays as they are, and are
/// recorded, except in groups of one, which exchange nothing. Barriers are not recorded. A transfer, which is no
/// collective call, is an error: std::invalid_argument.
class CallRecorder {
 public:
  /// Ranks of the world, in the order of a group.
  using Members = std::vector<std::size_t>;

  /// `rank` is the recorded rank of `ranks`. The world's first call of split returns the first group of `splits`, and
  /// so on; each contains `rank`.
  CallRecorder(std::size_t rank, std::size_t ranks, const std::vector<Members>& splits);
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  /// The communicator of all ranks. It and the groups that it returns must not outlive this object.
  Communicator& world() { return *world_; }
  /// The members of each group that can be split off, after the group of all ranks.
  const std::vector<Members>& groups() const { return groups_; }
  /// The calls so far, in order.
  std::vector<CollectiveCall>& calls() { return calls_; }

 private:
  std::vector<Members> groups_;
  std::vector<CollectiveCall> calls_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace mylos::parallel
