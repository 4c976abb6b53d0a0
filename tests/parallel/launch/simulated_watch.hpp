#pragma once

#include "parallel/launch/wait_inquiry.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace mylos::tests {

/// Ranks simulated in one process that exchange inquiry messages, for more ranks than any machine here has. Each rank
/// checks every 0.1 s, in an order that is drawn once.
class SimulatedWatch {
 public:
  using Activity = parallel::RankState::Activity;
  using Kind = parallel::WatchMessage::Kind;

  /// At first all ranks have been waiting in the same operation since time 0. Time begins at `begin`, by default
  /// shortly before the limit, because before it no rank sends anything.
  SimulatedWatch(std::size_t size, double limit, std::optional<double> begin = std::nullopt)
      : limit_(limit), now_(begin.value_or(limit - 1.0)), ranks_(size), order_(size) {
    for (std::size_t rank = 0; rank < size; ++rank) {
      ranks_[rank].own = {"", Activity::waiting, 3, "all-reduce of layer 3 gradients", 4096, 1, 7};
      ranks_[rank].inquiry.emplace(size, rank, [this, rank](std::size_t to, const parallel::WatchMessage& message) {
        ++ranks_[rank].sent;
        ++ranks_[to].received;
        ++sent_[message.kind];
        ranks_[to].arrived.emplace_back(rank, message);
      });
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::shuffle(order_.begin(), order_.end(), std::mt19937(42));
  }

  /// Sets a rank's activity since time `since`.
  void set(std::size_t rank, Activity activity, double since = 0.0) {
    ranks_[rank].own.activity = activity;
    ranks_[rank].since = since;
  }
  /// Makes a rank stop answering, as if it had been stopped.
  void remove(std::size_t rank) { ranks_[rank].is_gone = true; }
  /// Makes a rank answer again, including messages received in the meantime.
  void bring_back(std::size_t rank) { ranks_[rank].is_gone = false; }
  /// Ends the operation in which all ranks wait; they now wait in the next one.
  void next_operation() {
    for (Rank& rank : ranks_) {
      ++rank.own.sequence;
      rank.since = now_;
    }
  }

  /// Performs one check by one rank.
  void look(std::size_t which) {
    Rank& rank = ranks_[which];
    if (rank.is_gone) return;
    rank.own.seconds = now_ - rank.since;
    rank.own.file_seconds = rank.own.activity == Activity::files ? rank.own.seconds : 0.0;
    const parallel::WaitInquiry::Moment moment{now_, limit_, rank.own};
    std::vector<std::pair<std::size_t, parallel::WatchMessage>> arrived;
    arrived.swap(rank.arrived);
    for (const auto& [from, message] : arrived) rank.inquiry->receive(from, message, moment);
    rank.inquiry->look(moment);
    if (rank.inquiry->verdict()) teller_ = which;
  }

  /// Runs until time `end`, or until a rank decides to end the program.
  void run_to(double end) {
    for (; now_ < end && !teller_; now_ += 0.1) {
      for (const std::size_t rank : order_) look(rank);
    }
  }

  double now() const { return now_; }
  const std::optional<std::size_t>& teller() const { return teller_; }
  const std::vector<parallel::RankState>& verdict() const { return *ranks_[*teller_].inquiry->verdict(); }
  /// Returns the ranks that do not answer according to the verdict.
  std::vector<std::size_t> silent() const {
    std::vector<std::size_t> found;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (verdict()[rank].activity == Activity::silent) found.push_back(rank);
    }
    return found;
  }
  std::size_t excuses(std::size_t rank) const { return ranks_[rank].inquiry->excuses(); }

  std::size_t messages() const {
    std::size_t sum = 0;
    for (const Rank& rank : ranks_) sum += rank.sent;
    return sum;
  }
  std::size_t sent_by(std::size_t rank) const { return ranks_[rank].sent; }
  std::size_t sent_of(Kind kind) const { return sent_.contains(kind) ? sent_.at(kind) : 0; }
  /// Returns the largest number of messages sent or received by a rank.
  std::size_t most_messages() const {
    std::size_t most = 0;
    for (const Rank& rank : ranks_) most = std::max({most, rank.sent, rank.received});
    return most;
  }

 private:
  struct Rank {
    parallel::RankState own;
    double since = 0.0;
    bool is_gone = false;
    std::size_t sent = 0, received = 0;
    std::vector<std::pair<std::size_t, parallel::WatchMessage>> arrived;
    std::optional<parallel::WaitInquiry> inquiry;
  };

  double limit_, now_;
  std::vector<Rank> ranks_;
  std::vector<std::size_t> order_;
  std::map<Kind, std::size_t> sent_;
  std::optional<std::size_t> teller_;
};

}  // namespace mylos::tests
