#include "parallel/communicator/collective_calls.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/operation_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace mylos::parallel {
namespace {

using Kind = CollectiveCall::Kind;

std::size_t position_in(const CallRecorder::Members& members, std::size_t rank) {
  const auto found = std::ranges::find(members, rank);
  require(found != members.end(), fmt::format("a group without the recorded rank {}", rank));
  return static_cast<std::size_t>(found - members.begin());
}

/// A group of the recorded rank.
class RecordedGroup final : public Communicator {
 public:
  RecordedGroup(const std::vector<CallRecorder::Members>& groups, std::vector<CollectiveCall>& calls, std::size_t group,
                std::size_t rank)
      : groups_(groups),
        calls_(calls),
        group_(group),
        world_rank_(rank),
        rank_(position_in(groups[group], rank)),
        nodes_(apart(groups[group].size())) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return groups_[group_].size(); }
  const NodeMap& node_map() const override { return nodes_; }

  Event all_reduce(const ExecutionSpace&, const Buffer& data, const std::string& what) override {
    check_all_reduce(data, what);
    return record({.kind = Kind::all_reduce, .count = data.count, .type = data.type});
  }
  Event reduce_scatter(const ExecutionSpace&, const Buffer& all, const Buffer& mine, const std::string& what) override {
    check_reduce_scatter(all, mine, rank(), size(), what);
    return record({.kind = Kind::reduce_scatter,
                   .count = all.count,
                   .part = mine.count,
                   .type = all.type,
                   .sum_type = mine.type});
  }
  Event all_gather(const ExecutionSpace&, const Buffer& mine, const Buffer& all, const std::string& what) override {
    check_all_gather(mine, all, rank(), size(), what);
    return record({.kind = Kind::all_gather, .count = all.count, .part = mine.count, .type = all.type});
  }
  Event broadcast(const ExecutionSpace&, const Buffer& data, std::size_t root, const std::string& what) override {
    check_broadcast(data, root, size(), what);
    return record({.kind = Kind::broadcast, .count = data.count, .type = data.type, .root = root});
  }
  Event gather(const ExecutionSpace&, const Buffer& mine, const Buffer& all, std::size_t root,
               const std::string& what) override {
    check_gather(mine, all, rank(), root, size(), what);
    return record({.kind = Kind::gather, .count = mine.count * size(), .type = mine.type, .root = root});
  }
  Event transfer(const ExecutionSpace&, const Buffer&, std::size_t, std::size_t, const std::string& what) override {
    require(false, fmt::format("transfer of {}: only collective calls are recorded", what));
    return {};
  }
  void barrier(const std::string&) override {}
  void set_bucket(std::size_t) override {}
  void set_order(SumOrder) override {}

  std::unique_ptr<Communicator> split(std::size_t, std::size_t key) override {
    const std::size_t next = ++splits_;
    require(group_ == 0 && next < groups_.size(), fmt::format("split {} of group {}: no members given", next, group_));
    auto group = std::make_unique<RecordedGroup>(groups_, calls_, next, world_rank_);
    require(group->rank() == key, fmt::format("split: key {} of rank {} of its group", key, group->rank()));
    return group;
  }

 private:
  Event record(CollectiveCall call) {
    call.group = group_;
    if (size() > 1) calls_.push_back(call);
    return {};
  }

  const std::vector<CallRecorder::Members>& groups_;
  std::vector<CollectiveCall>& calls_;
  std::size_t group_, world_rank_, rank_, splits_ = 0;
  NodeMap nodes_;
};

}  // namespace

CallRecorder::CallRecorder(std::size_t rank, std::size_t ranks, const std::vector<Members>& splits)
    : groups_(1, Members(ranks)) {
  std::iota(groups_.front().begin(), groups_.front().end(), std::size_t{0});
  groups_.insert(groups_.end(), splits.begin(), splits.end());
  world_ = std::make_unique<RecordedGroup>(groups_, calls_, 0, rank);
}

std::unique_ptr<Exchange> make_exchange(const CollectiveCall& call, Transport& transport, const RankGroup& group,
                                        const ExchangeRules& rules, std::byte* array) {
  const Parts parts = call.part > 0 ? Parts{call.count, call.part} : divide(call.count, group.size());
  const std::size_t part_bytes = parts.part * bytes_of(call.type);
  std::byte* const mine = array + group.rank * part_bytes;
  switch (call.kind) {
    case Kind::all_reduce:
      return make_all_reduce(transport, group, rules, call.type, call.count, array);
    case Kind::reduce_scatter:
      return make_reduce_scatter(transport, group, rules, {call.type, array, parts, call.sum_type, mine});
    case Kind::all_gather:
      return make_all_gather(transport, group, rules, {call.count * bytes_of(call.type), part_bytes}, mine, array);
    case Kind::broadcast:
      return make_broadcast(transport, group, rules, call.root, call.count * bytes_of(call.type), array);
    default:
      return make_gather(transport, group, call.root, part_bytes, mine, array);
  }
}

}  // namespace mylos::parallel
