#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/exchanges/exchanges.hpp"
#include "parallel/communicator/mpi/mpi_messages.hpp"
#include "parallel/communicator/mpi/mpi_transport.hpp"
#include "parallel/communicator/staging_memory.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

/// Tags of the groups besides the world, which has 0: two of all ranks, and the first one that a split may give.
inline constexpr int watch_tag = 2, farewell_tag = 4, first_split_tag = 6;

/// State shared by all communicators of a process. While its thread runs, only that thread calls MPI.
struct MpiContext {
  MpiContext() = default;
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;

  /// Submits an operation to the communication thread. This and after_others() are called by the launching thread only.
  void submit(const std::shared_ptr<QueuedOperation>& operation) {
    if (operation->stream() == nullptr) {
      last_without_stream = operation;
    } else {
      has_stream = true;
      last_on_stream = operation;
    }
    thread.submit(operation);
  }
  /// Returns the event of an operation that changes nothing, in a group of one, on an array in `memory`.
  Event after_others(MemoryKind memory) const;

  ExchangeMemory memory;
  ExchangeRules rules;
  StagingMemory images;
  std::chrono::duration<double> limit = std::chrono::minutes(10);  ///< how long a rank waits for others
  std::shared_ptr<PendingResults> results = std::make_shared<PendingResults>();
  bool has_stream = false;  ///< device arrays are exchanged on a stream
  /// The last operation without a stream, and the last one on the stream. Each is gone when nobody holds its event.
  std::weak_ptr<QueuedOperation> last_without_stream, last_on_stream;
  int next_tag = first_split_tag;  ///< above those of all groups that this rank is in
  CommunicationThread thread;
};

/// A group over MPI, for communicators that run some of their operations by other means.
class MpiRanks : public Communicator {
 public:
  /// Returns the name of the group's next operation, which may run by any means; `what` includes its kind.
  virtual OperationName next_name(std::string what, std::size_t bytes) = 0;
  /// The rank, and the nodes of the group's ranks.
  virtual const RankGroup& positions() const = 0;
  /// The ranks of the group, as numbers of the world, in order.
  virtual std::vector<int> members() const = 0;
  /// Like split, but returns the same kind of communicator.
  virtual std::unique_ptr<MpiRanks> split_ranks(std::size_t color, std::size_t key) = 0;
};

/// Returns a communicator over the ranks of `group`, which remains owned by the caller. Sums are computed here in the
/// order that Communicator promises, because MPI guarantees none. `context` must outlive it. `identity` is the same on
/// the ranks of the group, and differs from that of other groups. `nodes` has a number for each rank of the group;
/// ranks on the same node have equal numbers (tests may pass any). A group of one exchanges and submits nothing.
std::unique_ptr<MpiRanks> make_mpi_communicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity,
                                                std::span<const std::size_t> nodes);

}  // namespace mylos::parallel
