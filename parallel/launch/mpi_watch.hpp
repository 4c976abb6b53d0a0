#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/mpi_messages.hpp"
#include "parallel/launch/error_announcement.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/launch/mpi_mail.hpp"
#include "parallel/launch/node_peers.hpp"
#include "parallel/launch/wait_inquiry.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// Ends the program on every rank if a rank does not join an operation. If the process of a rank on this node has
/// ended, that is noticed at once. For other ranks, a rank that has waited for the time limit raises an alarm. The
/// ranks then ask each other along a tree what they are doing (wait_inquiry.hpp); their communication threads answer
/// even while they compute. The lowest rank that has waited too long reports which ranks are missing. A stopped process
/// does not answer. Time that an answering rank spent working with files does not count.
class MpiWatch final : public Watch {
 public:
  /// `ranks` holds all ranks; no one else may send messages in this group.
  MpiWatch(const MpiGroup& ranks, std::vector<RankPlacement> placements, std::span<const NodePeer> peers);
  MpiWatch(const MpiWatch&) = delete;
  MpiWatch& operator=(const MpiWatch&) = delete;

  void look(const Waiting& waiting) override;

  void set_time_limit(std::chrono::duration<double> limit) { limit_ = limit.count(); }
  void note_step(std::size_t step) { step_ = step; }
  /// Announces, through the communication thread, that this rank ends because of an error, so that the other ranks do
  /// not report it as gone. Returns true if this rank should print its error, and false if a lower rank has an error at
  /// about the same time. Must not be called by the communication thread.
  bool announce_error();

  /// Number of messages that this rank has sent.
  std::size_t sent() const { return sent_; }
  /// See WaitInquiry::excuses.
  std::size_t excuses() const { return inquiry_.excuses(); }

 private:
  using Clock = std::chrono::steady_clock;

  RankState state_of(const Waiting& waiting) const;
  void send(std::size_t rank, const WatchMessage& message);
  void receive_all(const WaitInquiry::Moment& moment);
  /// Returns true, once, if this rank should print its error.
  bool claim_report() { return failed_ > rank_ && !is_reported_.exchange(true); }
  void limit_failure(const Failure& failure);
  void look_for_peers(const Waiting& waiting);
  /// Announces that this rank ends the program, in the same way as an error, so that other ranks do not report the wait
  /// too.
  void announce_end(const std::vector<RankState>& states);
  [[noreturn]] void end_all(const std::vector<std::string>& lines) const;

  std::size_t rank_;
  MpiMail mail_;
  std::size_t sent_ = 0;
  std::vector<RankPlacement> placements_;
  NodePeers peers_;
  std::atomic<double> limit_{std::chrono::duration<double>(default_time_limit).count()};  ///< in seconds
  std::atomic<std::size_t> step_{0};
  std::atomic<bool> has_error_{false}, announced_{false};
  std::atomic<bool> is_reported_{false};  ///< a thread prints this rank's error, or has
  std::atomic<std::size_t> failed_;       ///< lowest other rank that ends with an error; the number of ranks if none
  Clock::time_point failed_at_;           ///< when the first one became known

  ErrorAnnouncement errors_;
  WaitInquiry inquiry_;
  bool peers_gone_ = false;
  Clock::time_point gone_at_;
};

}  // namespace mylos::parallel
