#include "parallel/communicator/nccl/nccl_transport.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/node_map.hpp"

#include <algorithm>
#include <utility>

namespace mylos::parallel {

class NcclTransport::Noted final : public Messages {
 public:
  explicit Noted(NcclTransport& transport) : transport_(transport) {}

  void send(std::size_t to, const std::byte* data, std::size_t bytes) override {
    // NcclLink::Message is used in both directions.
    if (bytes > 0) transport_.sent_.push_back({to, const_cast<std::byte*>(data), bytes});
  }
  void receive(std::size_t from, std::byte* data, std::size_t bytes) override {
    if (bytes > 0) transport_.received_.push_back({from, data, bytes});
  }
  bool done() override {
    transport_.add_group();
    return true;
  }

 private:
  NcclTransport& transport_;
};

std::unique_ptr<Messages> NcclTransport::make_messages() { return std::make_unique<Noted>(*this); }

std::byte* NcclTransport::reserve(std::size_t bytes) {
  const std::size_t at_once = std::min(exchange_bytes(link_->ranks(), bucket_), device_exchange_bytes(link_->ranks()));
  return link_->device()->reserve(std::max(bytes, at_once));
}

void NcclTransport::sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                        void* sums) {
  if (count == 0) return;
  ensure(parts.size() <= most_parts, "NCCL: too many parts for a sum");
  DeviceParts in_order;
  std::ranges::copy(parts, in_order.part.begin());
  in_order.count = parts.size();
  steps_.emplace_back([=, device = link_->device()] { device->sum(type, in_order, count, sum_type, sums); });
}

void NcclTransport::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  steps_.emplace_back([=, device = link_->device()] { device->copy(to, from, bytes); });
}

void NcclTransport::add_group() {
  if (sent_.empty() && received_.empty()) return;
  steps_.emplace_back(
      [link = link_, nodes = nodes_, sent = std::exchange(sent_, {}), received = std::exchange(received_, {})] {
        link->exchange(sent, received);
        for (const NcclLink::Message& message : sent) {
          count_sent(message.bytes);
          count_message(message.bytes, nodes->node_of(message.peer) != nodes->node_of(link->rank()));
        }
      });
}

NcclTransport::Steps NcclTransport::take_steps() {
  add_group();
  return std::exchange(steps_, {});
}

NcclTransport::Steps steps_of_exchange(NcclTransport& transport,
                                       const std::function<std::unique_ptr<Exchange>(Transport&)>& make) {
  const std::unique_ptr<Exchange> exchange = make(transport);
  while (exchange->advance() != Exchange::Progress::done) continue;
  return transport.take_steps();
}

}  // namespace mylos::parallel
