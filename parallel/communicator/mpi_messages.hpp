#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace mylos::parallel {

/// An MPI communicator with this process's rank and the number of ranks.
struct MpiGroup {
  MPI_Comm ranks = MPI_COMM_NULL;
  std::size_t rank = 0;
  std::size_t size = 1;
};

/// Returns the group of `communicator`. Its MPI errors are reported as exceptions.
MpiGroup make_mpi_group(MPI_Comm communicator);

/// Messages of one rank that are under way together. Between two ranks they arrive in the order in which they were
/// sent.
class MpiMessages {
 public:
  MpiMessages() = default;
  /// Cancels messages under way, on the thread that calls MPI. After it their memory is not used any more, unless
  /// another rank has died while it was exchanging a long message.
  ~MpiMessages();
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  /// Starts a message, unless `bytes` is 0. `bytes` must fit in an int.
  void send(const MpiGroup& group, std::size_t to, const std::byte* data, std::size_t bytes);
  void receive(const MpiGroup& group, std::size_t from, std::byte* data, std::size_t bytes);

  /// Returns true if all messages have arrived and sent `data` may be overwritten.
  bool done();

 private:
  std::vector<MPI_Request> sent_, received_;
};

}  // namespace mylos::parallel
