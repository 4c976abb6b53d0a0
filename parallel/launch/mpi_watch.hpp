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

/// Ends the program on every rank where one does not come: a rank of this node whose process has ended is seen at once;
/// for others, a rank that has waited for the time limit raises an alarm, ranks ask each other along a tree what they
/// do (wait_inquiry.hpp), which their communication threads answer also while they compute, and the lowest that has
/// waited too long tells who is missing. A stopped process does not answer. Time in which a rank that answers worked
/// with files does not count.
class MpiWatch final : public Watch {
 public:
  /// `ranks`: all of them, in a group that nobody else sends messages in.
  MpiWatch(const MpiGroup& ranks, std::vector<RankPlacement> placements, std::span<const NodePeer> peers);
  MpiWatch(const MpiWatch&) = delete;
  MpiWatch& operator=(const MpiWatch&) = delete;

  void look(const Waiting& waiting) override;

  void set_time_limit(std::chrono::duration<double> limit) { limit_ = limit.count(); }
  void note_step(std::size_t step) { step_ = step; }
  /// Tells the other ranks, through the communication thread, that this one ends because of an error, so that they do
  /// not report that it is gone. Returns whether this rank is the one to print its error: false where a lower rank has
  /// an error at about the same time. Called by another thread than the communication thread.
  bool announce_error();

  /// Messages that this rank has sent.
  std::size_t sent() const { return sent_; }
  /// See WaitInquiry.
  std::size_t excuses() const { return inquiry_.excuses(); }

 private:
  using Clock = std::chrono::steady_clock;

  RankState state_of(const Waiting& waiting) const;
  void send(std::size_t rank, const WatchMessage& message);
  void receive_all(const WaitInquiry::Moment& moment);
  void look_for_peers(const Waiting& waiting);
  /// Tells other ranks that this one ends the program, as an error of its own, so that they do not tell it too.
  void announce_end(const std::vector<RankState>& states);
  [[noreturn]] void end_all(const std::vector<std::string>& lines) const;

  std::size_t rank_;
  MpiMail mail_;
  std::size_t sent_ = 0;
  std::vector<RankPlacement> placements_;
  NodePeers peers_;
  std::atomic<double> limit_{600.0};  ///< seconds
  std::atomic<std::size_t> step_{0};
  std::atomic<bool> has_error_{false}, announced_{false};
  std::atomic<std::size_t> failed_;  ///< the lowest other rank known to end with an error; the number of ranks: none
  Clock::time_point failed_at_;      ///< when the first was known

  ErrorAnnouncement errors_;
  WaitInquiry inquiry_;
  bool peers_gone_ = false;
  Clock::time_point gone_at_;
};

}  // namespace mylos::parallel
