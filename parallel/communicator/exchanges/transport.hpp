#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/communicator.hpp"

#include <algorithm>
#include <array>
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

/// Steps of an exchange, two of which are under way at a time. They end in order.
class Steps {
 public:
  std::size_t begun() const { return begun_; }
  std::size_t ended() const { return ended_; }
  /// Forgets its steps, all of which have ended.
  void restart() { begun_ = ended_ = 0; }

  /// Begins the steps before `ready` that may be under way, and ends at most one. `begin(step, messages)` starts the
  /// messages of a step, and `end(step)` is called when they have arrived. Returns true if it made progress.
  template <class Begin, class End>
  bool advance(Transport& transport, std::size_t ready, const Begin& begin, const End& end) {
    bool moved = false;
    for (; begun_ < std::min(ready, ended_ + 2); ++begun_, moved = true) {
      std::unique_ptr<Messages>& messages = messages_[begun_ % 2];
      if (!messages) messages = transport.make_messages();
      begin(begun_, *messages);
    }
    if (ended_ == begun_ || !messages_[ended_ % 2]->done()) return moved;
    end(ended_++);
    return true;
  }

 private:
  std::size_t begun_ = 0, ended_ = 0;
  std::array<std::unique_ptr<Messages>, 2> messages_;
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
