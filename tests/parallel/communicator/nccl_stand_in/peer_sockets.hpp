#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mylos::stand_in {

/// A rank's part of an exchange with `peer`, another rank.
struct Message {
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// A socket to each other rank of a communicator on this machine. MPI has no part in it, so that what goes wrong here
/// is seen by the program's own watch over its ranks.
class PeerSockets {
 public:
  /// `name` is the same on all ranks of the communicator, and no other's.
  PeerSockets(std::string name, int rank, int ranks);
  ~PeerSockets();
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  /// Goes on without waiting; true when there is a connection to every rank.
  bool connect();

  enum class Outcome { done, given_up, mismatch };
  /// Returns when all of `sent` and `received` have gone through; given_up when `give_up` was set before, also because
  /// a rank is gone; mismatch where a peer sends another size or an operation of another `kind`.
  Outcome exchange(std::uint64_t kind, const std::vector<Message>& sent, const std::vector<Message>& received,
                   const std::atomic<bool>& give_up);

 private:
  std::string name_;
  int rank_;
  int listener_ = -1;
  std::vector<int> sockets_;  ///< by rank; -1 where there is none (yet)
};

}  // namespace mylos::stand_in
