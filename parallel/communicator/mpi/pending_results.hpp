#pragma once

#include "parallel/communicator/communication_thread.hpp"

#include <cstdint>
#include <deque>
#include <memory>

namespace mylos::parallel {

/// Operations whose results are still in copies on the host, in the order of submission. A result is written back when
/// its operation or a later one is waited for, or when a later operation uses the same memory. Used only by the thread
/// that launches kernels. All entries are dropped when Kokkos is finalised, because Kokkos owns the memory of the
/// copies.
class PendingResults : public std::enable_shared_from_this<PendingResults> {
 public:
  /// `result`: the memory that `operation` writes back to.
  void add(std::shared_ptr<QueuedOperation> operation, const Buffer& result);
  /// Drops the result of `operation`.
  void drop(const QueuedOperation& operation) noexcept;
  /// Number of results added so far.
  std::uint64_t added() const { return written_ + pending_.size(); }

  /// Writes back the first `count` results added so far, before later launches on `space`. Errors: rethrows the error
  /// of an operation that failed.
  void write_back(std::uint64_t count, const ExecutionSpace& space);
  /// Writes back all results up to the last one that overlaps `buffer`.
  void write_back_into(const Buffer& buffer, const ExecutionSpace& space);

 private:
  struct Pending {
    std::shared_ptr<QueuedOperation> operation;  ///< null if its result was dropped
    Buffer result;
  };

  std::deque<Pending> pending_;
  std::uint64_t written_ = 0;
  bool ends_with_kokkos_ = false;
};

}  // namespace mylos::parallel
