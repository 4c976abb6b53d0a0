#include "parallel/communicator/mpi/mpi_communicator.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/mpi/mpi_operations.hpp"
#include "parallel/communicator/operation_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mylos::parallel {
namespace {

using Content = StagedArray::Content;

/// Every MPI allows this tag.
constexpr std::int64_t largest_tag = 32767;

/// Combines an identity with a value into a new identity, with the multipliers of splitmix64.
std::uint64_t mixed(std::uint64_t identity, std::uint64_t value) {
  std::uint64_t mix = (identity ^ value) * 0xbf58476d1ce4e5b9u;
  mix ^= mix >> 27;
  return mix * 0x94d049bb133111ebu + value;
}

/// Returns true if a group of one has nothing to move, because the result is already in place.
bool is_in_place(const Buffer& from, const Buffer& to) { return from.count == 0 || from.data == to.data; }

/// The facts that ranks exchange before a split.
struct Member {
  std::uint64_t color, key;
  std::uint64_t rank;  ///< in the MPI communicator
  std::uint64_t node;
  std::int64_t next_tag;
};

class MpiCommunicator final : public MpiRanks {
 public:
  MpiCommunicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity,
                  std::span<const std::size_t> nodes)
      : context_(context), group_(group), positions_(make_rank_group(group.rank, nodes)), identity_(identity) {
    require(nodes.size() == group.size, fmt::format("the nodes of {} of {} ranks", nodes.size(), group.size));
  }

  std::size_t rank() const override { return group_.rank; }
  std::size_t size() const override { return group_.size; }
  const NodeMap& node_map() const override { return *positions_.nodes; }

  Event all_reduce(const ExecutionSpace& space, const Buffer& data, const std::string& what) override {
    check_all_reduce(data, what);
    OperationName operation = name("all-reduce of", what, data);
    if (is_alone()) return context_.after_others(data.memory);
    const auto make = [rules = context_.rules, type = data.type, count = data.count](
                          Transport& transport, const RankGroup& group, std::byte*, std::byte* result) {
      return make_all_reduce(transport, group, rules, type, count, result);
    };
    return submit(std::move(operation), no_image(space), image_of(space, data), make);
  }

  Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                       const std::string& what) override {
    check_reduce_scatter(all, mine, rank(), size(), what);
    OperationName operation = name("reduce-scatter of", what, all);
    if (is_alone()) {
      return alone(space, all, mine, [&](Communicator& self) { return self.reduce_scatter(space, all, mine, what); });
    }
    StagedArray whole = image_of(space, all);
    const auto make = [rules = context_.rules, type = all.type, parts = Parts{all.count, mine.count},
                       sum_type = mine.type](Transport& transport, const RankGroup& group, std::byte* input,
                                             std::byte* result) {
      return make_reduce_scatter(transport, group, rules, {type, input, parts, sum_type, result});
    };
    return submit(std::move(operation), std::move(whole), result_image(space, own_part(mine, all)), make);
  }

  Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                   const std::string& what) override {
    check_all_gather(mine, all, rank(), size(), what);
    OperationName operation = name("all-gather of", what, all);
    if (is_alone()) {
      return alone(space, mine, all, [&](Communicator& self) { return self.all_gather(space, mine, all, what); });
    }
    StagedArray part = image_of(space, own_part(mine, all));
    const auto make = [rules = context_.rules, bytes = Parts{bytes_of(all), bytes_of(mine)}](
                          Transport& transport, const RankGroup& group, std::byte* input, std::byte* result) {
      return make_all_gather(transport, group, rules, bytes, input, result);
    };
    return submit(std::move(operation), std::move(part), result_image(space, all), make);
  }

  Event broadcast(const ExecutionSpace& space, const Buffer& data, std::size_t root, const std::string& what) override {
    check_broadcast(data, root, size(), what);
    OperationName operation = name("broadcast of", what, data);
    if (is_alone()) return context_.after_others(data.memory);
    const auto make = [rules = context_.rules, root, bytes = bytes_of(data)](
                          Transport& transport, const RankGroup& group, std::byte*, std::byte* result) {
      return make_broadcast(transport, group, rules, root, bytes, result);
    };
    return submit(std::move(operation), no_image(space), image_of(space, data), make);
  }

  Event gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all, std::size_t root,
               const std::string& what) override {
    check_gather(mine, all, rank(), root, size(), what);
    OperationName operation = name("gather of", what, mine);
    if (is_alone()) {
      return alone(space, mine, all, [&](Communicator& self) { return self.gather(space, mine, all, root, what); });
    }
    StagedArray part = image_of(space, mine);
    const auto make = [root, bytes = bytes_of(mine)](Transport& transport, const RankGroup& group, std::byte* input,
                                                     std::byte* result) {
      return make_gather(transport, group, root, bytes, input, result);
    };
    return submit(std::move(operation), std::move(part), rank() == root ? result_image(space, all) : no_image(space),
                  make);
  }

  Event transfer(const ExecutionSpace& space, const Buffer& data, std::size_t from, std::size_t to,
                 const std::string& what) override {
    check_transfer(data, from, to, size(), what);
    const OperationName transfer_name = name("transfer of", what, data);
    if (from == to || (rank() != from && rank() != to)) return {};
    const auto operation =
        std::make_shared<Transfer>(transfer_name, group_, from, to, bytes_of(data), image_of(space, data));
    return submit(operation);
  }

  void expect_no_failure() const override { context_.thread.expect_no_failure(); }

  void barrier(const std::string& what) override {
    OperationName operation_name = name("barrier at", what, {});
    if (is_alone()) return;
    const auto operation = std::make_shared<Barrier>(std::move(operation_name), group_);
    context_.submit(operation);
    operation->wait_on_host();
  }

  void set_bucket(std::size_t bytes) override { context_.rules.bucket = bytes; }
  void set_order(SumOrder order) override { context_.rules.order = order; }

  std::unique_ptr<Communicator> split(std::size_t color, std::size_t key) override { return split_ranks(color, key); }

  std::unique_ptr<MpiRanks> split_ranks(std::size_t color, std::size_t key) override {
    const std::uint64_t identity = mixed(mixed(identity_, operations_++), color);
    const Member mine{.color = color,
                      .key = key,
                      .rank = static_cast<std::uint64_t>(group_.rank_of(rank())),
                      .node = positions_.nodes->node_of(rank()),
                      .next_tag = context_.next_tag};
    std::vector<Member> members(size(), mine);
    if (!is_alone()) {
      const ExecutionSpace space;
      const auto buffer = [](const Member* from, std::size_t count) -> Buffer {
        return {const_cast<Member*>(from), count * sizeof(Member), ElementType::byte, MemoryKind::host};
      };
      all_gather(space, buffer(&mine, 1), buffer(members.data(), size()), "the members of groups").wait(space);
    }
    return make_group(color, identity, std::move(members));
  }

  const RankGroup& positions() const override { return positions_; }
  std::vector<int> members() const override {
    std::vector<int> ranks;
    for (std::size_t member = 0; member < size(); ++member) ranks.push_back(group_.rank_of(member));
    return ranks;
  }

  OperationName next_name(std::string what, std::size_t bytes) override {
    return {std::move(what), bytes, identity_, operations_++};
  }

 private:
  OperationName name(const char* kind, const std::string& what, const Buffer& buffer) {
    return next_name(fmt::format("{} {}", kind, what), bytes_of(buffer));
  }

  /// Returns this rank's group of a split. `members` are the ranks of this group, in their order.
  std::unique_ptr<MpiRanks> make_group(std::size_t color, std::uint64_t identity, std::vector<Member> members) {
    const auto tag = std::ranges::max(members, {}, &Member::next_tag).next_tag;
    require(tag < largest_tag, fmt::format("split: more than {} groups", largest_tag / 2));
    context_.next_tag = static_cast<int>(tag) + 2;
    std::erase_if(members, [&](const Member& member) { return member.color != color; });
    std::ranges::stable_sort(members, {}, &Member::key);
    std::vector<int> ranks;
    std::vector<std::size_t> nodes;
    for (const Member& member : members) {
      ranks.push_back(static_cast<int>(member.rank));
      nodes.push_back(member.node);
    }
    const auto own = std::ranges::find(ranks, group_.rank_of(rank()));
    const MpiGroup group{.ranks = group_.ranks,
                         .rank = static_cast<std::size_t>(own - ranks.begin()),
                         .size = ranks.size(),
                         .tag = static_cast<int>(tag),
                         .members = std::make_shared<const std::vector<int>>(ranks)};
    return std::make_unique<MpiCommunicator>(context_, group, identity, nodes);
  }

  bool is_alone() const { return size() == 1; }
  /// Returns `mine` without the padding that follows the elements of `all`.
  Buffer own_part(Buffer mine, const Buffer& all) const {
    mine.count = Parts{all.count, mine.count}.piece(rank(), 0, mine.count).size;
    return mine;
  }
  /// Runs an operation of a group of one, which copies `from` to `to`.
  template <class Copy>
  Event alone(const ExecutionSpace& space, const Buffer& from, const Buffer& to, const Copy& copy) {
    if (is_in_place(from, to)) return context_.after_others(to.memory);
    context_.after_others(to.memory).wait(space);  // earlier operations may use these arrays
    return copy(*self_);
  }

  /// Returns an image with the values that earlier operations leave in the buffer.
  StagedArray image_of(const ExecutionSpace& space, const Buffer& buffer) {
    context_.results->write_back_into(buffer, space);
    return {space, buffer, Content::copied, context_.images};
  }
  StagedArray result_image(const ExecutionSpace& space, const Buffer& buffer) {
    return {space, buffer, Content::undefined, context_.images};
  }
  StagedArray no_image(const ExecutionSpace& space) {
    return {space, {nullptr, 0, ElementType::byte, MemoryKind::host}, Content::undefined, context_.images};
  }

  Event submit(OperationName operation_name, StagedArray input, StagedArray result, MpiExchange::Make make) {
    return submit(std::make_shared<MpiExchange>(std::move(operation_name), group_, positions_, context_.memory,
                                                std::move(input), std::move(result), std::move(make)));
  }
  Event submit(const std::shared_ptr<MpiOperation>& operation) {
    operation->follow(context_.results, operation);
    context_.submit(operation);
    return Event(operation);
  }

  MpiContext& context_;
  MpiGroup group_;
  RankGroup positions_;
  std::uint64_t identity_, operations_ = 0;
  std::unique_ptr<Communicator> self_ = make_self_communicator();
};

}  // namespace

Event MpiContext::after_others(MemoryKind memory) const {
  const bool is_on_stream = has_stream && memory == MemoryKind::device;
  return Event(std::make_shared<AfterOthers>((is_on_stream ? last_on_stream : last_without_stream).lock(), results));
}

std::unique_ptr<MpiRanks> make_mpi_communicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity,
                                                std::span<const std::size_t> nodes) {
  return std::make_unique<MpiCommunicator>(context, group, identity, nodes);
}

void PendingResults::add(std::shared_ptr<QueuedOperation> operation, const Buffer& result) {
  if (!std::exchange(ends_with_kokkos_, true)) {
    Kokkos::push_finalize_hook([weak = weak_from_this()] {
      const auto results = weak.lock();
      if (results == nullptr) return;
      for (Pending& each : results->pending_) each.operation.reset();
    });
  }
  pending_.push_back({std::move(operation), result});
}

void PendingResults::drop(const QueuedOperation& operation) noexcept {
  for (Pending& each : pending_) {
    if (each.operation.get() == &operation) each.operation.reset();
  }
}

void PendingResults::write_back(std::uint64_t count, const ExecutionSpace& space) {
  while (written_ < count) {
    const std::shared_ptr<QueuedOperation> operation = std::move(pending_.front().operation);
    pending_.pop_front();
    ++written_;
    if (operation) operation->take_result(space);
  }
}

void PendingResults::write_back_into(const Buffer& buffer, const ExecutionSpace& space) {
  std::size_t last = pending_.size();
  const auto is_there = [&](const Pending& each) { return each.operation && overlap(each.result, buffer); };
  while (last > 0 && !is_there(pending_[last - 1])) --last;
  write_back(written_ + last, space);
}

}  // namespace mylos::parallel
