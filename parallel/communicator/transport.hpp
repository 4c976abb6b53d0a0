#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>

/// The interface between exchange algorithms and the machine. In runs MPI carries the messages; a counting transport
/// (counting_transport.hpp) runs the same algorithms for any number of ranks without moving data.
namespace mylos::parallel {

/// Messages of one rank that are under way together. Between two ranks they arrive in the order in which they were
/// sent.
class Messages {
 public:
  virtual ~Messages() = default;
  /// Starts a message, unless `bytes` is 0. Rank numbers are those of the group.
  virtual void send(std::size_t to, const std::byte* data, std::size_t bytes) = 0;
  virtual void receive(std::size_t from, std::byte* data, std::size_t bytes) = 0;
  /// Returns true if all messages have arrived and sent `data` may be overwritten.
  virtual bool done() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Messages> make_messages() = 0;
  /// Returns at least `bytes` for data from other ranks, aligned for vector instructions, valid until the next call.
  virtual std::byte* reserve(std::size_t bytes) = 0;
  /// Sums arrays, see rank_sum.hpp.
  virtual void sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                   void* sums) = 0;
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
};

/// One rank's part of an operation of its group. The transport and the arrays must outlive it.
class Exchange {
 public:
  using Progress = QueuedOperation::Progress;

  virtual ~Exchange() = default;
  /// Advances as far as possible without waiting. Must be called until it returns done.
  virtual Progress advance() = 0;
};

}  // namespace mylos::parallel
