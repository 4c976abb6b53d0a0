#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mylos::stand_in {

/// A rank's data to exchange with `peer`, another rank.
struct Message {
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Sockets to all other ranks of a communicator on this machine. MPI is not involved, so failures here are detected by
/// the program's own watch over its ranks.
class PeerSockets {
 public:
  /// `name` is the same on all ranks of the communicator, and unique to it.
  PeerSockets(std::string name, int rank, int ranks);
  ~PeerSockets();
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  /// Makes progress without waiting. Returns true once there is a connection to every rank.
  bool connect();

  enum class Outcome { done, given_up, mismatch };
  /// Returns `done` when all of `sent` and `received` have been transferred, `given_up` if `give_up` was set before
  /// (also if a rank is gone), and `mismatch` if a peer sends another size or an operation of another `kind`.
  Outcome exchange(std::uint64_t kind, const std::vector<Message>& sent, const std::vector<Message>& received,
                   const std::atomic<bool>& give_up);

 private:
  std::string name_;
  int rank_;
  int listener_ = -1;
  std::vector<int> sockets_;  ///< by rank; -1 if not connected
};

}  // namespace mylos::stand_in
