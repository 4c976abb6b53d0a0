#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/exchanges.hpp"
#include "parallel/communicator/image_memory.hpp"
#include "parallel/communicator/mpi_messages.hpp"
#include "parallel/communicator/mpi_transport.hpp"
#include "parallel/communicator/pending_results.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// What the communicators of a process share. Only its thread calls MPI while it runs.
struct MpiContext {
  MpiContext() = default;
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;

  /// Submits to the thread. Of the caller's thread, as all that follows.
  void submit(const std::shared_ptr<QueuedOperation>& operation) {
    last = operation;
    thread.submit(operation);
  }
  /// What a group of one gives its callers for an operation that changes nothing.
  Event after_others() const;

  ExchangeMemory memory;
  ExchangeRules rules;
  ImageMemory images;
  std::shared_ptr<PendingResults> results = std::make_shared<PendingResults>();
  std::weak_ptr<QueuedOperation> last;  ///< that was submitted; gone where it has ended and nobody asks for its result
  std::vector<MPI_Comm> made;           ///< by splits; freed when no thread uses them any more
  CommunicationThread thread;
};

/// A group over MPI, for a communicator that carries out some of its operations by other means.
class MpiRanks : public Communicator {
 public:
  /// Of the group's next operation, whatever carries it out; `what` with its kind.
  virtual OperationName next_name(std::string what, std::size_t bytes) = 0;
  /// The rank, and where the group's ranks are.
  virtual const RankGroup& positions() const = 0;
  /// split, giving the same kind.
  virtual std::unique_ptr<MpiRanks> split_ranks(std::size_t color, std::size_t key) = 0;
};

/// Over the ranks of `group`, which stays the caller's. Sums are taken here, in the order that Communicator promises,
/// because MPI promises none. `context` outlives it. `identity`: the same on the ranks of the group, and on no others.
/// `nodes` has a number for each rank of the group: equal numbers for ranks that share a node. Tests say what they
/// like. A group of one exchanges nothing and submits nothing.
std::unique_ptr<MpiRanks> make_mpi_communicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity,
                                                std::span<const std::size_t> nodes);

}  // namespace mylos::parallel
