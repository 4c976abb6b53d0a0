#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>

/// What the algorithms of exchanges need of the machine. MPI carries their messages in runs; a counting transport
/// (counting_transport.hpp) has the same algorithms run for any number of ranks without moving data.
namespace mylos::parallel {

/// Messages of one rank that are under way together. Between two ranks they arrive in the order in which they were
/// sent.
class Messages {
 public:
  virtual ~Messages() = default;
  /// Nothing is sent or received where `bytes` is 0. Ranks are those of the group.
  virtual void send(std::size_t to, const std::byte* data, std::size_t bytes) = 0;
  virtual void receive(std::size_t from, std::byte* data, std::size_t bytes) = 0;
  /// All have arrived, and `data` of those sent may be written.
  virtual bool done() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Messages> make_messages() = 0;
  /// Memory for what other ranks send, aligned for vectors: at least `bytes`, until the next call.
  virtual std::byte* reserve(std::size_t bytes) = 0;
  /// See rank_sum.hpp.
  virtual void sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                   void* sums) = 0;
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
};

/// One rank's part of an operation that its group carries out. The transport and the arrays outlive it.
class Exchange {
 public:
  using Progress = QueuedOperation::Progress;

  virtual ~Exchange() = default;
  /// Goes on as far as it can without waiting, until it returns done.
  virtual Progress advance() = 0;
};

}  // namespace mylos::parallel
