#include "parallel/communicator/mpi/mpi_transport.hpp"

#include "parallel/communicator/exchanges/rank_sum.hpp"
#include "parallel/communicator/node_map.hpp"

#include <cstring>
#include <new>

namespace mylos::parallel {
namespace {

constexpr std::align_val_t exchange_alignment{64};

class GroupMessages final : public Messages {
 public:
  GroupMessages(const MpiGroup& group, const NodeMap& nodes) : group_(group), nodes_(nodes) {}

  void send(std::size_t to, const std::byte* data, std::size_t bytes) override {
    messages_.send(group_, to, data, bytes);
    if (bytes > 0) count_message(bytes, nodes_.node_of(to) != nodes_.node_of(group_.rank));
  }
  void receive(std::size_t from, std::byte* data, std::size_t bytes) override {
    messages_.receive(group_, from, data, bytes);
  }
  bool done() override { return messages_.done(); }

 private:
  MpiGroup group_;
  const NodeMap& nodes_;
  MpiMessages messages_;
};

}  // namespace

void ExchangeMemory::Release::operator()(std::byte* memory) const { ::operator delete[](memory, exchange_alignment); }

std::byte* ExchangeMemory::reserve(std::size_t bytes) {
  if (bytes_ < bytes) {
    memory_.reset();
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(::operator new[](bytes, exchange_alignment)));
    bytes_ = bytes;
  }
  return memory_.get();
}

std::unique_ptr<Messages> MpiTransport::make_messages() { return std::make_unique<GroupMessages>(group_, nodes_); }

void MpiTransport::sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                       void* sums) {
  sum_over_ranks(type, parts, count, sum_type, sums);
}

void MpiTransport::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace mylos::parallel
