#pragma once

#include "parallel/communicator/exchanges/exchanges.hpp"
#include "parallel/communicator/exchanges/transport.hpp"
#include "parallel/communicator/node_map.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

/// Simulates all ranks of an operation in one process, for tests and for counts on more ranks than any available
/// machine has.
namespace mylos::parallel {

/// The cost of one rank's part of an operation.
struct ExchangeCount {
  std::size_t messages = 0, bytes = 0;                 ///< sent
  std::size_t network_sent = 0, network_received = 0;  ///< bytes to and from other nodes
  std::size_t rounds = 0;  ///< length of the longest chain of messages, each sent after the previous one had arrived
  std::size_t memory = 0;  ///< bytes for received data, in addition to the arrays
};

class CountingRanks {
 public:
  enum class Data { moved, counted };
  /// With `counted`, no array is read or written.
  CountingRanks(std::span<const std::size_t> node_of_rank, Data data);

  using Make = std::function<std::unique_ptr<Exchange>(Transport&, const RankGroup&)>;
  /// Runs the operation on all ranks and returns the cost on each. Errors: std::logic_error if a message has no
  /// receiver or not the size that its receiver expects, or if ranks wait for each other.
  std::vector<ExchangeCount> run(const Make& make);
  /// Runs one rank's part alone: messages it waits for arrive immediately. Rounds count the batches of messages that it
  /// waits for.
  ExchangeCount run_alone(std::size_t rank, const Make& make);

 private:
  friend class CountingTransport;
  struct Message {
    std::vector<std::byte> data;
    std::size_t bytes, round;
  };
  struct Rank {
    ExchangeCount count;
    std::unordered_map<std::size_t, std::deque<Message>> arrived;  ///< by sending rank
    std::unique_ptr<std::byte[]> untouched;
    std::size_t untouched_bytes = 0;
  };
  std::shared_ptr<const NodeMap> nodes_, flat_;
  Data data_;
  bool alone_ = false;
  std::vector<Rank> ranks_;
};

}  // namespace mylos::parallel
