#include "parallel/communicator/mpi_communicator.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/mpi_operations.hpp"
#include "parallel/communicator/operation_checks.hpp"

#include <fmt/format.h>

#include <limits>

namespace mylos::parallel {
namespace {

using Content = HostImage::Content;

int mpi_integer(std::size_t value, const char* what) {
  require(value <= static_cast<std::size_t>(std::numeric_limits<int>::max()), fmt::format("split: {} {}", what, value));
  return static_cast<int>(value);
}

/// Identities of groups: of one after another, by the multiplication that splitmix64 uses.
std::uint64_t mixed(std::uint64_t identity, std::uint64_t value) {
  std::uint64_t mix = (identity ^ value) * 0xbf58476d1ce4e5b9u;
  mix ^= mix >> 27;
  return mix * 0x94d049bb133111ebu + value;
}

class MpiCommunicator final : public MpiRanks {
 public:
  MpiCommunicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity)
      : context_(context), group_(group), identity_(identity) {}

  std::size_t rank() const override { return group_.rank; }
  std::size_t size() const override { return group_.size; }

  Event all_reduce(const ExecutionSpace& space, const Buffer& data, const std::string& what) override {
    check_all_reduce(data, what);
    HostImage image = image_of(space, data);
    if (ShortAllReduce::suits(bytes_of(data))) {
      return submit<ShortAllReduce>(name("all-reduce of", what, data), group_, context_.memory, data.type, data.count,
                                    std::move(image));
    }
    return submit<LongAllReduce>(name("all-reduce of", what, data), group_, context_.memory, data.type, data.count,
                                 std::move(image));
  }

  Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                       const std::string& what) override {
    check_reduce_scatter(all, mine, rank(), size(), what);
    HostImage whole = image_of(space, all);
    return submit<ReduceScatter>(name("reduce-scatter of", what, all), group_, context_.memory, all, std::move(whole),
                                 mine, HostImage(space, mine, Content::undefined, context_.images));
  }

  Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                   const std::string& what) override {
    check_all_gather(mine, all, rank(), size(), what);
    HostImage part = image_of(space, mine);
    HostImage whole(space, all, Content::undefined, context_.images);
    const std::size_t bytes = bytes_of(mine);
    if (ShortAllGather::suits(bytes)) {
      return submit<ShortAllGather>(name("all-gather of", what, all), group_, bytes, std::move(part), std::move(whole));
    }
    return submit<LongAllGather>(name("all-gather of", what, all), group_, context_.memory.bucket(), bytes,
                                 std::move(part), std::move(whole));
  }

  Event broadcast(const ExecutionSpace& space, const Buffer& data, std::size_t root, const std::string& what) override {
    check_broadcast(data, root, size(), what);
    return submit<Broadcast>(name("broadcast of", what, data), group_, root, bytes_of(data), image_of(space, data));
  }

  Event transfer(const ExecutionSpace& space, const Buffer& data, std::size_t from, std::size_t to,
                 const std::string& what) override {
    check_transfer(data, from, to, size(), what);
    const OperationName transfer_name = name("transfer of", what, data);
    if (from == to || (rank() != from && rank() != to)) return {};
    return submit<Transfer>(transfer_name, group_, from, to, bytes_of(data), image_of(space, data));
  }

  void barrier(const std::string& what) override {
    const auto operation = std::make_shared<Barrier>(name("barrier at", what, {}), group_);
    context_.thread.submit(operation);
    operation->wait_on_host();
  }

  void set_bucket(std::size_t bytes) override { context_.memory.set_bucket(bytes); }

  std::unique_ptr<Communicator> split(std::size_t color, std::size_t key) override { return split_ranks(color, key); }

  std::unique_ptr<MpiRanks> split_ranks(std::size_t color, std::size_t key) override {
    const OperationName split_name = name("split of", "the ranks", {});
    const auto operation =
        std::make_shared<Split>(split_name, group_, mpi_integer(color, "color"), mpi_integer(key, "key"));
    context_.thread.submit(operation);
    operation->wait_on_host();
    const std::uint64_t identity = mixed(mixed(identity_, split_name.sequence), color);
    context_.made.push_back(operation->made().ranks);
    return std::make_unique<MpiCommunicator>(context_, operation->made(), identity);
  }

  OperationName next_name(std::string what, std::size_t bytes) override {
    return {std::move(what), bytes, identity_, operations_++};
  }

 private:
  OperationName name(const char* kind, const std::string& what, const Buffer& buffer) {
    return next_name(fmt::format("{} {}", kind, what), bytes_of(buffer));
  }

  /// With the values that operations before leave there.
  HostImage image_of(const ExecutionSpace& space, const Buffer& buffer) {
    context_.results->write_back_into(buffer, space);
    return {space, buffer, Content::copied, context_.images};
  }

  template <class Operation, class... Arguments>
  Event submit(Arguments&&... arguments) {
    auto operation = std::make_shared<Operation>(std::forward<Arguments>(arguments)...);
    operation->follow(context_.results, operation);
    context_.thread.submit(operation);
    return Event(std::move(operation));
  }

  MpiContext& context_;
  MpiGroup group_;
  std::uint64_t identity_, operations_ = 0;
};

}  // namespace

std::unique_ptr<MpiRanks> make_mpi_communicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity) {
  return std::make_unique<MpiCommunicator>(context, group, identity);
}

}  // namespace mylos::parallel
