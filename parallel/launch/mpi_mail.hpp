#pragma once

#include "parallel/communicator/mpi_messages.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Sends and receives messages of any length without waiting for either, because the other rank may have ended.
class MpiMail {
 public:
  /// Takes a group whose messages are all this class's.
  explicit MpiMail(const MpiGroup& ranks) : ranks_(ranks) {}

  void send(std::size_t to, std::vector<std::byte> message);
  /// Whether MPI needs the memory of no message any more.
  bool is_all_sent();
  /// Takes what has arrived. A short message may come before a long one that the same rank sent earlier.
  void receive(const std::function<void(std::size_t from, std::span<const std::byte> message)>& take);

 private:
  struct Letter {
    std::size_t from;  ///< of those that arrive
    std::vector<std::byte> message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static bool is_done(Letter& letter);

  MpiGroup ranks_;
  std::list<Letter> sent_, arriving_;
};

}  // namespace mylos::parallel
