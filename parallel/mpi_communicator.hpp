#pragma once

#include "parallel/communication_thread.hpp"
#include "parallel/mpi_exchange.hpp"
#include "parallel/mpi_messages.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace mylos::parallel {

/// What the communicators of a process share. Only its thread calls MPI while it runs.
struct MpiContext {
  MpiContext() = default;
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;

  ExchangeMemory memory;
  std::vector<MPI_Comm> made;  ///< by splits; freed when no thread uses them any more
  CommunicationThread thread;
};

/// Over the ranks of `group`, which stays the caller's. Sums are taken here, in the order that Communicator promises,
/// because MPI promises none. `context` outlives it. `identity`: the same on the ranks of the group, and on no others.
std::unique_ptr<Communicator> make_mpi_communicator(MpiContext& context, const MpiGroup& group, std::uint64_t identity);

}  // namespace mylos::parallel
