#pragma once

#include "parallel/communicator/exchanges/transport.hpp"
#include "parallel/communicator/nccl/nccl_operations.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Records an exchange as the steps of an NCCL operation. The device's stream runs the steps in order, so the exchange
/// can treat a message as received as soon as it is started. The messages that an exchange starts before it waits for
/// one of them form one NCCL group and run concurrently.
class NcclTransport final : public Transport {
 public:
  using Steps = std::vector<NcclOperation::Step>;

  /// Connects the ranks of `nodes`. The first exchange reserves device memory for a bucket of `bucket` bytes, or for
  /// the default bucket if that is smaller, because enlarging the memory later waits for the device.
  NcclTransport(std::shared_ptr<NcclLink> link, std::shared_ptr<const NodeMap> nodes, std::size_t bucket)
      : link_(std::move(link)), nodes_(std::move(nodes)), bucket_(bucket) {}

  std::unique_ptr<Messages> make_messages() override;
  std::byte* reserve(std::size_t bytes) override;
  void sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
           void* sums) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;

  /// Returns the steps recorded since the last call.
  Steps take_steps();

 private:
  class Noted;

  void add_group();

  std::shared_ptr<NcclLink> link_;
  std::shared_ptr<const NodeMap> nodes_;
  std::size_t bucket_;
  std::vector<NcclLink::Message> sent_, received_;  ///< messages of the next group
  Steps steps_;
};

/// Returns the steps of the exchange created by `make`.
NcclTransport::Steps steps_of_exchange(NcclTransport& transport,
                                       const std::function<std::unique_ptr<Exchange>(Transport&)>& make);

}  // namespace mylos::parallel
