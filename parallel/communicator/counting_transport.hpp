#pragma once

#include "parallel/communicator/exchanges.hpp"
#include "parallel/communicator/node_map.hpp"
#include "parallel/communicator/transport.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

/// The ranks of an operation in one process, for tests and for counts at numbers of ranks that no machine at hand has.
namespace mylos::parallel {

/// What one rank's part of an operation takes.
struct ExchangeCount {
  std::size_t messages = 0, bytes = 0;                 ///< sent
  std::size_t network_sent = 0, network_received = 0;  ///< bytes to and from other nodes
  std::size_t rounds = 0;  ///< the longest chain of messages, each sent after the one before had come
  std::size_t memory = 0;  ///< bytes for what others send, beside the arrays
};

class CountingRanks {
 public:
  enum class Data { moved, counted };
  /// `counted`: no array is read or written.
  CountingRanks(std::span<const std::size_t> node_of_rank, Data data);

  using Make = std::function<std::unique_ptr<Exchange>(Transport&, const RankGroup&)>;
  /// Carries out the operation on all ranks, and returns what each takes. Errors: std::logic_error where a message has
  /// no receiver, or another size than its receiver expects, or ranks wait for each other.
  std::vector<ExchangeCount> run(const Make& make);
  /// One rank's part alone: what it waits for is there at once. Rounds are batches of messages that it waits for.
  ExchangeCount run_alone(std::size_t rank, const Make& make);

 private:
  friend class CountingTransport;
  struct Message {
    std::vector<std::byte> data;
    std::size_t bytes, round;
  };
  struct Rank {
    ExchangeCount count;
    std::unordered_map<std::size_t, std::deque<Message>> arrived;  ///< from each rank
    std::unique_ptr<std::byte[]> untouched;
    std::size_t untouched_bytes = 0;
  };
  std::shared_ptr<const NodeMap> nodes_, flat_;
  Data data_;
  bool alone_ = false;
  std::vector<Rank> ranks_;
};

}  // namespace mylos::parallel
