#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace mylos::parallel {

/// Ranks with a place for their messages.
struct MpiGroup {
  MPI_Comm ranks = MPI_COMM_NULL;
  std::size_t rank = 0;
  std::size_t size = 1;
};

/// Of the ranks of `communicator`. Their errors become exceptions.
MpiGroup make_mpi_group(MPI_Comm communicator);

/// Messages of one rank that are under way together. Between two ranks they arrive in the order in which they were
/// sent.
class MpiMessages {
 public:
  /// Nothing is sent or received where `bytes` is 0. An int counts them.
  void send(const MpiGroup& group, std::size_t to, const std::byte* data, std::size_t bytes);
  void receive(const MpiGroup& group, std::size_t from, std::byte* data, std::size_t bytes);

  /// All have arrived, and `data` of those sent may be written.
  bool done();

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace mylos::parallel
