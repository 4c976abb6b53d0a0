#include "parallel/communicator/nccl/nccl_communicator.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/exchanges/exchange_proof.hpp"
#include "parallel/communicator/exchanges/parts.hpp"
#include "parallel/communicator/mpi/mpi_communicator.hpp"
#include "parallel/communicator/nccl/nccl_operations.hpp"
#include "parallel/communicator/nccl/nccl_transport.hpp"
#include "parallel/communicator/nccl/nccl_version.hpp"
#include "parallel/communicator/operation_checks.hpp"
#include "parallel/communicator/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <type_traits>
#include <utility>

namespace mylos::parallel {
namespace {

using Message = NcclLink::Message;
using Step = NcclOperation::Step;
using Steps = NcclTransport::Steps;
using MakeSteps = NcclOperation::MakeSteps;

/// Bytes that make an exchange worth a launch of its own. An operation of NCCL takes some tens of microseconds however
/// short it is, which is what NVLink needs for about 8 MiB (40 us at 200 GB/s). Collecting more would gain little and
/// delay the first arrays. (PyTorch's DDP collects 25 MB.)
constexpr std::size_t least_bytes = std::size_t{8} << 20;

/// Data that the first rank of a group sends to the others before they connect.
struct Invitation {
  ncclUniqueId id{};
  int version = 0;                ///< NCCL version of the first rank
  std::array<char, 512> error{};  ///< why the first rank cannot connect; empty if it can
};
static_assert(std::is_trivially_copyable_v<Invitation>);

Invitation make_invitation() {
  Invitation invitation;
  try {
    const NcclLibrary& library = nccl_library();
    invitation.version = library.version;
    check_nccl(library, library.get_unique_id(&invitation.id), nullptr, "making a group's id");
  } catch (const std::exception& error) {
    std::strncpy(invitation.error.data(), error.what(), invitation.error.size() - 1);
  }
  return invitation;
}

/// Throws if the group cannot connect. If the first rank cannot, the error is the same on every rank.
void check_invitation(const Invitation& invitation) {
  if (invitation.error.front() != '\0') fail(invitation.error.data());
  const std::string obstacle = nccl_group_obstacle(nccl_library().version, invitation.version);
  if (!obstacle.empty()) fail(obstacle);
}

void count_sent_to_others(const NcclLink& link, std::size_t bytes) { count_sent(bytes * (link.ranks() - 1)); }

/// The next three return NCCL's call for an array, which also counts the bytes that it sends; null if the array is
/// empty.
Step all_reduce_call(const std::shared_ptr<NcclLink>& link, const Buffer& data) {
  if (data.count == 0) return {};
  return [=] {
    link->all_reduce(data.type, data.data, data.count);
    // bytes that a ring algorithm sends
    count_sent(2 * bytes_of(data) / link->ranks() * (link->ranks() - 1));
  };
}

Step reduce_scatter_call(const std::shared_ptr<NcclLink>& link, const Buffer& all, const Buffer& mine) {
  if (mine.count == 0) return {};
  return [=] {
    link->reduce_scatter(all.type, all.data, mine.data, mine.count);
    count_sent_to_others(*link, bytes_of(mine));
  };
}

Step all_gather_call(const std::shared_ptr<NcclLink>& link, const Buffer& mine, const Buffer& all) {
  if (mine.count == 0) return {};
  return [=] {
    link->all_gather(mine.data, all.data, bytes_of(mine));
    count_sent_to_others(*link, bytes_of(mine));
  };
}

const Buffer& whole_of(const NamedArray& array) { return array.data; }
const Buffer& whole_of(const NamedParts& parts) { return parts.all; }

/// Returns `call` as the only step; no steps if it is null.
Steps steps_of(Step call) {
  Steps steps;
  if (call) steps.push_back(std::move(call));
  return steps;
}

/// Returns one step that makes all calls in one group.
Steps steps_of_group(const std::shared_ptr<NcclLink>& link, std::vector<Step> calls) {
  std::erase_if(calls, [](const Step& call) { return !call; });
  if (calls.size() < 2) return calls;
  return {[link, calls = std::move(calls)] { link->group(calls); }};
}

void add_gather_to_root(Steps& steps, const std::shared_ptr<NcclLink>& link, const Buffer& mine, const Buffer& all,
                        std::size_t root) {
  const std::size_t bytes = bytes_of(mine);
  auto* const own = static_cast<std::byte*>(mine.data);
  auto* const parts = static_cast<std::byte*>(all.data);
  if (link->rank() != root) {
    steps.emplace_back([=] {
      link->exchange({{root, own, bytes}}, {});
      count_sent(bytes);
    });
    return;
  }
  if (own != parts + root * bytes) {
    steps.emplace_back([=] { link->device()->copy(parts + root * bytes, own, bytes); });
  }
  std::vector<Message> received;
  for (std::size_t rank = 0; rank < link->ranks(); ++rank) {
    if (rank != root) received.push_back({rank, parts + rank * bytes, bytes});
  }
  steps.emplace_back([=] { link->exchange({}, received); });
}

/// The NCCL communicator of the groups of some ranks. The last of these groups ends it.
struct Connection {
  std::shared_ptr<NcclLink> link;
};

/// The device and the connections of all groups that are split from the first one.
struct NcclResources {
  std::shared_ptr<NcclDevice> device;                                 ///< null until a group needs it
  std::map<std::vector<int>, std::weak_ptr<Connection>> connections;  ///< by the ranks of their groups, in order
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(MpiContext& context, std::shared_ptr<MpiRanks> hosts, const DeviceSums& sums,
                   std::shared_ptr<NcclResources> resources)
      : context_(context), hosts_(std::move(hosts)), sums_(sums), resources_(std::move(resources)) {}

  ~NcclCommunicator() override {
    if (!connection_ || connection_.use_count() > 1) return;
    const bool alone = trial_ != nullptr;  // it has failed
    const auto operation = std::make_shared<NcclDisconnect>(hosts_->next_name("NCCL disconnection of the devices", 0),
                                                            std::move(connection_->link), alone);
    context_.submit(operation);
    // If this rank alone ends because of an error, it must report that before it waits for the others.
    if (std::uncaught_exceptions() == 0) operation->wait_for_its_end();
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  std::size_t rank() const override { return hosts_->rank(); }
  std::size_t size() const override { return hosts_->size(); }
  const NodeMap& node_map() const override { return hosts_->node_map(); }

  Event all_reduce(const ExecutionSpace& space, const Buffer& data, const std::string& what) override {
    check_all_reduce(data, what);
    if (is_of_hosts(data)) return hosts_->all_reduce(space, data, what);
    const std::shared_ptr<NcclLink> link = connected(space);
    OperationName operation_name = name("all-reduce of", what, data);
    if (in_order(data.type)) {
      return submit_exchange(space, link, std::move(operation_name),
                             [=](Transport& transport, const RankGroup& group, const ExchangeRules& rules) {
                               return make_all_reduce(transport, group, rules, data.type, data.count,
                                                      static_cast<std::byte*>(data.data));
                             });
    }
    return submit(space, link, std::move(operation_name), steps_of(all_reduce_call(link, data)));
  }

  Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                       const std::string& what) override {
    check_reduce_scatter(all, mine, rank(), size(), what);
    if (is_of_hosts(all)) return hosts_->reduce_scatter(space, all, mine, what);
    const std::shared_ptr<NcclLink> link = connected(space);
    OperationName operation_name = name("reduce-scatter of", what, all);
    if (in_order(all.type)) {
      const SumArrays arrays{all.type,
                             static_cast<const std::byte*>(all.data),
                             {all.count, mine.count},
                             mine.type,
                             static_cast<std::byte*>(mine.data)};
      return submit_exchange(space, link, std::move(operation_name),
                             [=](Transport& transport, const RankGroup& group, const ExchangeRules& rules) {
                               return make_reduce_scatter(transport, group, rules, arrays);
                             });
    }
    return submit(space, link, std::move(operation_name), steps_of(reduce_scatter_call(link, all, mine)));
  }

  Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                   const std::string& what) override {
    check_all_gather(mine, all, rank(), size(), what);
    if (is_of_hosts(all)) return hosts_->all_gather(space, mine, all, what);
    const std::shared_ptr<NcclLink> link = connected(space);
    return submit(space, link, name("all-gather of", what, all), steps_of(all_gather_call(link, mine, all)));
  }

  Event broadcast(const ExecutionSpace& space, const Buffer& data, std::size_t root, const std::string& what) override {
    check_broadcast(data, root, size(), what);
    if (is_of_hosts(data)) return hosts_->broadcast(space, data, root, what);
    const std::shared_ptr<NcclLink> link = connected(space);
    Steps steps;
    if (data.count > 0) {
      steps.emplace_back([=] {
        link->broadcast(data.data, bytes_of(data), root);
        if (link->rank() == root) count_sent_to_others(*link, bytes_of(data));
      });
    }
    return submit(space, link, name("broadcast of", what, data), std::move(steps));
  }

  Event gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all, std::size_t root,
               const std::string& what) override {
    check_gather(mine, all, rank(), root, size(), what);
    if (is_of_hosts(mine)) return hosts_->gather(space, mine, all, root, what);
    const std::shared_ptr<NcclLink> link = connected(space);
    Steps steps;
    if (mine.count > 0) add_gather_to_root(steps, link, mine, all, root);
    return submit(space, link, name("gather of", what, mine), std::move(steps));
  }

  Event transfer(const ExecutionSpace& space, const Buffer& data, std::size_t from, std::size_t to,
                 const std::string& what) override {
    check_transfer(data, from, to, size(), what);
    if (data.memory == MemoryKind::host) return hosts_->transfer(space, data, from, to, what);
    const std::shared_ptr<NcclLink> link = connected(space);
    const OperationName transfer_name = name("transfer of", what, data);
    if (from == to || (rank() != from && rank() != to)) return {};
    Steps steps;
    if (data.count > 0) {
      steps.emplace_back([=, is_sender = rank() == from] {
        const std::vector<Message> message{{is_sender ? to : from, static_cast<std::byte*>(data.data), bytes_of(data)}};
        link->exchange(is_sender ? message : std::vector<Message>(), is_sender ? std::vector<Message>() : message);
        if (is_sender) count_sent(bytes_of(data));
      });
    }
    return submit(space, link, transfer_name, std::move(steps));
  }

  Event all_reduce_coalesced(const ExecutionSpace& space, std::span<const NamedArray> arrays) override {
    for (const NamedArray& array : arrays) check_all_reduce(array.data, array.what);
    return coalesce(
        space, "all-reduce of", arrays, [this](const Buffer& data) { return in_order(data.type); },
        [&](const NamedArray& array) { return all_reduce(space, array.data, array.what); },
        [](const auto& link, const NamedArray& array) { return all_reduce_call(link, array.data); });
  }

  Event reduce_scatter_coalesced(const ExecutionSpace& space, std::span<const NamedParts> arrays) override {
    for (const NamedParts& parts : arrays) check_reduce_scatter(parts.all, parts.mine, rank(), size(), parts.what);
    return coalesce(
        space, "reduce-scatter of", arrays, [this](const Buffer& all) { return in_order(all.type); },
        [&](const NamedParts& parts) { return reduce_scatter(space, parts.all, parts.mine, parts.what); },
        [](const auto& link, const NamedParts& parts) { return reduce_scatter_call(link, parts.all, parts.mine); });
  }

  Event all_gather_coalesced(const ExecutionSpace& space, std::span<const NamedParts> arrays) override {
    for (const NamedParts& parts : arrays) check_all_gather(parts.mine, parts.all, rank(), size(), parts.what);
    return coalesce(
        space, "all-gather of", arrays, [](const Buffer&) { return false; },
        [&](const NamedParts& parts) { return all_gather(space, parts.mine, parts.all, parts.what); },
        [](const auto& link, const NamedParts& parts) { return all_gather_call(link, parts.mine, parts.all); });
  }

  std::size_t least_sum_bytes(ElementType type) const override {
    return size() == 1 || in_order(type) ? 0 : least_bytes;
  }
  std::size_t least_gather_bytes() const override { return size() == 1 ? 0 : least_bytes; }

  double connect(const ExecutionSpace& space) override {
    if (size() == 1 || connection_) return 0.0;
    connection_ = existing_connection();
    if (connection_) return 0.0;
    begin_connection(space, true);
    try_on_every_rank([&] {
      const std::string wrong = wrong_exchange(*this, space, sums_.bfloat16);
      if (!wrong.empty()) fail("NCCL: " + wrong);
    });
    double bandwidth = 0.0;
    try_on_every_rank([&] { bandwidth = measured_bandwidth(*this, space); });
    resources_->device->release();  // the memory of ordered sums, which is planned later
    trial_.reset();
    return static_cast<double>(minimum(*hosts_, static_cast<std::int64_t>(bandwidth)));
  }

  void expect_no_failure() const override {
    hosts_->expect_no_failure();
    if (trial_) trial_->expect_no_failure();
  }
  void barrier(const std::string& what) override { hosts_->barrier(what); }
  /// Ordered sums of device arrays use device_bucket of it; NCCL's own operations have their own buffers.
  void set_bucket(std::size_t bytes) override { hosts_->set_bucket(bytes); }
  void set_order(SumOrder order) override { hosts_->set_order(order); }

  std::unique_ptr<Communicator> split(std::size_t color, std::size_t key) override {
    return std::make_unique<NcclCommunicator>(context_, hosts_->split_ranks(color, key), sums_, resources_);
  }

 private:
  /// Returns true for arrays that go through `hosts_`: host arrays, and all arrays in a group of one, which exchanges
  /// nothing.
  bool is_of_hosts(const Buffer& buffer) const { return buffer.memory == MemoryKind::host || size() == 1; }

  /// Exchanges arrays in one group. Before it, host arrays and those that are summed in order are exchanged one after
  /// another by `single`. Which arrays these are depends only on what is the same on every rank.
  template <class Array, class IsOrdered, class Single, class Call>
  Event coalesce(const ExecutionSpace& space, const char* kind, std::span<const Array> arrays,
                 const IsOrdered& is_ordered, const Single& single, const Call& call) {
    std::vector<Event> events;
    std::vector<const Array*> grouped;
    for (const Array& array : arrays) {
      const Buffer& whole = whole_of(array);
      if (is_of_hosts(whole) || is_ordered(whole)) {
        events.push_back(single(array));
      } else {
        grouped.push_back(&array);
      }
    }
    if (grouped.size() == 1) {
      events.push_back(single(*grouped.front()));
    } else if (!grouped.empty()) {
      const std::shared_ptr<NcclLink> link = connected(space);
      std::vector<Step> calls;
      std::size_t bytes = 0;
      for (const Array* const array : grouped) {
        calls.push_back(call(link, *array));
        bytes += bytes_of(whole_of(*array));
      }
      const std::string what = fmt::format("{} and {} more", grouped.front()->what, grouped.size() - 1);
      events.push_back(submit(space, link, hosts_->next_name(fmt::format("NCCL {} {}", kind, what), bytes),
                              steps_of_group(link, std::move(calls))));
    }
    return Event::all_of(events);
  }

  /// bfloat16 is always summed in order, because NCCL would round partial sums.
  bool in_order(ElementType type) const { return sums_.in_order || type == ElementType::bfloat16; }

  OperationName name(const char* kind, const std::string& what, const Buffer& buffer) {
    return hosts_->next_name(fmt::format("NCCL {} {}", kind, what), bytes_of(buffer));
  }

  Event submit(const ExecutionSpace& space, std::shared_ptr<NcclLink> link, OperationName operation_name, Steps steps) {
    return submit(space, std::move(link), std::move(operation_name),
                  MakeSteps([steps = std::move(steps)] { return steps; }));
  }
  /// Submits the exchange created by `make`, the same as for host arrays over MPI.
  template <class MakeExchange>
  Event submit_exchange(const ExecutionSpace& space, const std::shared_ptr<NcclLink>& link,
                        OperationName operation_name, const MakeExchange& make) {
    const ExchangeRules rules{device_bucket(context_.rules.bucket), context_.rules.order};
    return submit(space, link, std::move(operation_name), MakeSteps([=, group = hosts_->positions()] {
                    NcclTransport transport(link, group.nodes, rules.bucket);
                    return steps_of_exchange(transport,
                                             [&](Transport& recorded) { return make(recorded, group, rules); });
                  }));
  }
  Event submit(const ExecutionSpace& space, std::shared_ptr<NcclLink> link, OperationName operation_name,
               MakeSteps make_steps) {
    auto operation =
        std::make_shared<NcclOperation>(std::move(operation_name), std::move(link), space, std::move(make_steps));
    submit(operation);
    return Event(std::move(operation));
  }
  void submit(const std::shared_ptr<QueuedOperation>& operation) {
    if (!trial_) return context_.submit(operation);
    context_.submit(std::make_shared<TriedOperation>(operation, trial_));
  }

  /// Runs a part of the trial on every rank, and throws the error of one of them on all. Errors of ranks that only wait
  /// for another one are thrown if there is no other.
  template <class Work>
  void try_on_every_rank(const Work& work) {
    std::exception_ptr timeout;
    on_every_rank(*hosts_, [&] {
      try {
        work();
        trial_->expect_no_failure();
      } catch (const TrialTimeout&) {
        timeout = std::current_exception();
      }
    });
    on_every_rank(*hosts_, [&] {
      if (timeout) std::rethrow_exception(timeout);
    });
  }

  /// Returns the connection of another group of the same ranks; null if there is none.
  std::shared_ptr<Connection> existing_connection() const {
    const auto found = resources_->connections.find(hosts_->members());
    return found == resources_->connections.end() ? nullptr : found->second.lock();
  }

  /// Returns the group's NCCL communicator. The first call submits its creation, on all ranks alike.
  const std::shared_ptr<NcclLink>& connected(const ExecutionSpace& space) {
    if (!connection_) connection_ = existing_connection();
    if (!connection_) begin_connection(space, false);
    return connection_->link;
  }

  /// Submits the creation of the group's NCCL communicator. `tries`: its operations are a trial from now on.
  void begin_connection(const ExecutionSpace& space, bool tries) {
    Invitation invitation;
    if (rank() == 0) invitation = make_invitation();
    const Buffer bytes{&invitation, sizeof invitation, ElementType::byte, MemoryKind::host};
    hosts_->broadcast(space, bytes, 0, "the id of a group of devices").wait(space);
    on_every_rank(*hosts_, [&] {
      check_invitation(invitation);
      if (!resources_->device) resources_->device = make_nccl_device();
    });
    connection_ = std::make_shared<Connection>(std::make_shared<NcclLink>(resources_->device, rank(), size()));
    resources_->connections[hosts_->members()] = connection_;
    if (tries) trial_ = std::make_shared<Trial>(context_.limit / 4);
    submit(std::make_shared<NcclConnect>(hosts_->next_name("NCCL connection of the devices", 0), connection_->link,
                                         invitation.id));
  }

  MpiContext& context_;
  std::shared_ptr<MpiRanks> hosts_;
  DeviceSums sums_;
  std::shared_ptr<NcclResources> resources_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Trial> trial_;  ///< set while the devices are connected for the first time, and if that has failed
};

}  // namespace

bool has_nccl() { return true; }

std::string nccl_obstacle() {
  try {
    [[maybe_unused]] const NcclLibrary& library = nccl_library();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string found_nccl_version() { return nccl_version_text(nccl_library().version); }

std::unique_ptr<Communicator> make_nccl_communicator(MpiContext& context, const std::shared_ptr<MpiRanks>& hosts,
                                                     const DeviceSums& sums) {
  if (const std::string obstacle = nccl_obstacle(); !obstacle.empty()) fail(obstacle);
  return std::make_unique<NcclCommunicator>(context, hosts, sums, std::make_shared<NcclResources>());
}

}  // namespace mylos::parallel
