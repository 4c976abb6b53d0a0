#pragma once

#include "parallel/communicator/mpi_messages.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Messages of any length between ranks that may have gone: nobody waits for one to be sent or to arrive.
class MpiMail {
 public:
  /// `ranks` is a group that nobody else sends messages in.
  explicit MpiMail(const MpiGroup& ranks) : ranks_(ranks) {}

  void send(std::size_t to, std::vector<std::byte> message);
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
