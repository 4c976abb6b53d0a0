#pragma once

#include "parallel/launch/heartbeat.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::tests {

inline parallel::RankState state_of(parallel::RankState::Activity activity, std::string_view operation) {
  parallel::RankState state{.activity = activity};
  operation.copy(state.operation.data(), state.operation.size() - 1);
  return state;
}

/// Ranks simulated in one process that send each other beats, for more ranks than any machine here has. Each rank looks
/// every 0.1 s, in an order that is drawn once, and has a clock of its own.
class SimulatedWatch {
 public:
  using Activity = parallel::RankState::Activity;

  /// At first all ranks have been waiting in the same operation since time 0. Time begins at `begin`, by default
  /// shortly before the limit.
  SimulatedWatch(std::size_t size, double limit, std::optional<double> begin = std::nullopt)
      : limit_(limit), now_(begin.value_or(limit - 1.0)), order_(size) {
    std::mt19937 random(42);
    for (std::size_t rank = 0; rank < size; ++rank) {
      ranks_.emplace_back(size, rank, [this, rank](std::size_t to, const parallel::Beat& beat) {
        ++ranks_[rank].sent;
        if (!ranks_[rank].is_mute) ranks_[to].arriving.push_back({now_ + ranks_[rank].delay, rank, beat});
      });
      ranks_[rank].clock = static_cast<double>(random() % 100000);
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::shuffle(order_.begin(), order_.end(), random);
  }

  /// Sets a rank's activity since time `since`.
  void set(std::size_t rank, Activity activity, double since = 0.0) {
    ranks_[rank].own.activity = activity;
    ranks_[rank].since = since;
  }
  /// Lets a rank wait in another operation than the others, of another group.
  void set_elsewhere(std::size_t rank) {
    ranks_[rank].own = state_of(Activity::waiting, "barrier at the wrong place");
    ranks_[rank].own.group = 2;
  }
  /// Makes a rank stop, as SIGSTOP does.
  void stop(std::size_t rank) { ranks_[rank].is_stopped = true; }
  /// Continues it; messages have arrived meanwhile.
  void resume(std::size_t rank) { ranks_[rank].is_stopped = false; }
  /// All ranks stop for so long, in seconds.
  void suspend(double seconds) { now_ += seconds; }
  /// Sets how long the messages of a rank take, in seconds.
  void delay(std::size_t rank, double seconds) { ranks_[rank].delay = seconds; }
  /// Loses the messages of a rank.
  void mute(std::size_t rank) { ranks_[rank].is_mute = true; }
  /// A rank ends because of an error.
  void fail(std::size_t rank) { ranks_[rank].fails = true; }
  /// Ends the operation in which all ranks wait; they now wait in the next one.
  void next_operation() {
    for (Rank& rank : ranks_) {
      ++rank.own.sequence;
      rank.since = now_;
    }
  }

  /// Runs until time `end`, or until a rank decides to end the program.
  void run_to(double end) {
    for (; now_ < end && !teller_; now_ += 0.1) {
      for (const std::size_t rank : order_) look(rank);
    }
  }

  double now() const { return now_; }
  const std::optional<std::size_t>& teller() const { return teller_; }
  /// The lowest rank that has waited too long, according to the one that tells.
  std::size_t late() const { return *ranks_[*teller_].heartbeat.late(); }
  const std::vector<parallel::RankState>& states() const { return ranks_[*teller_].heartbeat.states(); }
  /// The ranks that do not answer according to the first rank.
  std::vector<std::size_t> silent() const {
    std::vector<std::size_t> found;
    for (std::size_t rank = 0; rank < states().size(); ++rank) {
      if (states()[rank].activity == Activity::silent) found.push_back(rank);
    }
    return found;
  }
  /// The lowest rank that ends because of an error, as far as `rank` knows.
  std::size_t failed(std::size_t rank) const { return ranks_[rank].heartbeat.failed(); }
  /// Lets a rank tell all others that it ends the program, and stop.
  void end(std::size_t rank) {
    ranks_[rank].heartbeat.tell_all(ranks_[rank].own);
    stop(rank);
    teller_.reset();
  }

  std::size_t messages() const {
    return std::accumulate(ranks_.begin(), ranks_.end(), std::size_t{0},
                           [](std::size_t sum, const Rank& rank) { return sum + rank.sent; });
  }

 private:
  struct Message {
    double arrival;
    std::size_t from;
    parallel::Beat beat;
  };
  struct Rank {
    Rank(std::size_t size, std::size_t rank, parallel::Heartbeat::Send send)
        : own(state_of(Activity::waiting, "all-reduce of layer 3 gradients")), heartbeat(size, rank, std::move(send)) {}
    parallel::RankState own;
    double since = 0.0, delay = 0.0, clock = 0.0;
    bool is_stopped = false, is_mute = false, fails = false;
    std::size_t sent = 0;
    std::deque<Message> arriving;
    parallel::Heartbeat heartbeat;
  };

  void look(std::size_t which) {
    Rank& rank = ranks_[which];
    if (rank.is_stopped) return;
    rank.own.seconds = now_ - rank.since;
    rank.own.file_seconds = rank.own.activity == Activity::files ? rank.own.seconds : 0.0;
    const parallel::Heartbeat::Moment moment{now_ + rank.clock, limit_, rank.own, rank.fails};
    while (!rank.arriving.empty() && rank.arriving.front().arrival <= now_) {
      const Message message = rank.arriving.front();
      rank.arriving.pop_front();
      rank.heartbeat.receive(message.from, message.beat, moment);
    }
    rank.heartbeat.look(moment);
    if (rank.heartbeat.late() && !teller_) teller_ = which;
  }

  double limit_, now_;
  std::deque<Rank> ranks_;
  std::vector<std::size_t> order_;
  std::optional<std::size_t> teller_;
};

}  // namespace mylos::tests
