#pragma once

#include "parallel/communicator/exchanges/transport.hpp"
#include "parallel/communicator/mpi/mpi_messages.hpp"

#include <cstddef>
#include <memory>

namespace mylos::parallel {

class NodeMap;

/// Memory for data from other ranks, reused across operations. It is not a View, because it outlives Kokkos. Used by
/// the communication thread.
class ExchangeMemory {
 public:
  /// Returns at least `bytes`, aligned for vector instructions. Its contents are lost if it has to grow.
  std::byte* reserve(std::size_t bytes);
  std::size_t size() const { return bytes_; }

 private:
  struct Release {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::size_t bytes_ = 0;
};

/// MPI messages between the ranks of a group. Ranks of a node also use plain messages, which MPI carries through shared
/// memory. `memory` and `nodes` must outlive it.
class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiGroup& group, const NodeMap& nodes, ExchangeMemory& memory)
      : group_(group), nodes_(nodes), memory_(memory) {}

  std::unique_ptr<Messages> make_messages() override;
  std::byte* reserve(std::size_t bytes) override { return memory_.reserve(bytes); }
  void sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
           void* sums) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;

 private:
  MpiGroup group_;
  const NodeMap& nodes_;
  ExchangeMemory& memory_;
};

}  // namespace mylos::parallel
