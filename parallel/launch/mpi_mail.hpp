#pragma once

#include "parallel/communicator/mpi_messages.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Sends and receives messages of any length without blocking, because the other rank may have ended.
class MpiMail {
 public:
  /// No one else may send messages in the group `ranks`.
  explicit MpiMail(const MpiGroup& ranks) : ranks_(ranks) {}

  void send(std::size_t to, std::vector<std::byte> message);
  /// Returns true if MPI no longer needs the memory of any sent message.
  bool is_all_sent();
  /// Calls `take` for each message that has arrived. A short message may arrive before a long one that the same rank
  /// sent earlier.
  void receive(const std::function<void(std::size_t from, std::span<const std::byte> message)>& take);

 private:
  struct Letter {
    std::size_t from;  ///< sender of a received message
    std::vector<std::byte> message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static bool is_done(Letter& letter);

  MpiGroup ranks_;
  std::list<Letter> sent_, arriving_;
};

}  // namespace mylos::parallel
