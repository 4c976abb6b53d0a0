#pragma once

#include "parallel/communicator/communication_thread.hpp"

#include <cstdint>
#include <deque>
#include <memory>

namespace mylos::parallel {

/// Operations whose results are still in copies on the host, in the order in which they were submitted. A result is
/// written back when somebody waits for its operation or a later one, or when a later operation begins with the same
/// memory. Used by the thread that launches; forgotten when Kokkos ends, whose memory the copies are.
class PendingResults : public std::enable_shared_from_this<PendingResults> {
 public:
  /// `result`: the memory that `operation` writes back to.
  void add(std::shared_ptr<QueuedOperation> operation, const Buffer& result);
  /// Forgets the result of `operation`.
  void drop(const QueuedOperation& operation) noexcept;
  /// How many were ever added.
  std::uint64_t added() const { return written_ + pending_.size(); }

  /// Returns when the results of the first `count` that were ever added are in their memory, before what is launched on
  /// `space` from here on. Errors: that of an operation that failed.
  void write_back(std::uint64_t count, const ExecutionSpace& space);
  /// The same up to the last one whose result overlaps `buffer`.
  void write_back_into(const Buffer& buffer, const ExecutionSpace& space);

 private:
  struct Pending {
    std::shared_ptr<QueuedOperation> operation;  ///< null where its result was dropped
    Buffer result;
  };

  std::deque<Pending> pending_;
  std::uint64_t written_ = 0;
  bool ends_with_kokkos_ = false;
};

}  // namespace mylos::parallel
