#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace mylos::parallel {

/// Ranks that exchange messages over an MPI communicator: this process's number among them, and how many they are.
/// Groups over one communicator have different tags, so that making one needs no call that waits inside MPI.
struct MpiGroup {
  MPI_Comm ranks = MPI_COMM_NULL;
  std::size_t rank = 0;
  std::size_t size = 1;
  int tag = 0;  ///< of its messages; those of its barriers have the next one, so that a rank that is in another
                ///< operation than the others does not take one for data
  std::shared_ptr<const std::vector<int>> members = nullptr;  ///< their ranks in `ranks`; null: the same numbers

  int rank_of(std::size_t member) const { return members ? (*members)[member] : static_cast<int>(member); }
};

/// Returns the group of all ranks of `communicator`. Its MPI errors are reported as exceptions.
MpiGroup make_mpi_group(MPI_Comm communicator);

/// Messages of one rank that are under way together. Between two ranks they arrive in the order in which they were
/// sent.
class MpiMessages {
 public:
  /// `is_counted`: sent_bytes() includes these messages.
  explicit MpiMessages(bool is_counted = true) : is_counted_(is_counted) {}
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
  bool is_counted_;
  std::vector<MPI_Request> sent_, received_;
};

}  // namespace mylos::parallel
