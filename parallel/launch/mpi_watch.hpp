#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/mpi/mpi_messages.hpp"
#include "parallel/launch/heartbeat.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/launch/node_peers.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// Ends the program on every rank if a rank does not join an operation. If the process of a rank on this node has
/// ended, that is noticed at once. Other ranks are missed by those that have waited for the time limit (heartbeat.hpp).
/// Their communication threads answer even while they compute, but a stopped process does not.
class MpiWatch final : public Watch {
 public:
  /// `ranks` holds all ranks; no one else may send messages in this group.
  MpiWatch(const MpiGroup& ranks, std::vector<RankPlacement> placements, std::span<const NodePeer> peers);

  void look(const Waiting& waiting) override;

  void set_time_limit(std::chrono::duration<double> limit) { limit_ = limit.count(); }
  void note_step(std::size_t step) { step_ = step; }
  /// See Launch. Must not be called by the communication thread, through which it tells the others.
  bool announce_error();

  /// Number of messages that this rank has sent.
  std::size_t sent() const { return sent_; }

 private:
  /// A message that is under way.
  struct Letter {
    Beat beat;
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t from = 0;  ///< sender of a received message
  };

  using Lines = std::vector<std::string>;

  RankState state_of(const Waiting& waiting) const;
  void send(std::size_t to, const Beat& beat);
  bool is_all_sent();
  void receive_all(const Heartbeat::Moment& moment);
  /// Returns true, once, if this rank should print its error.
  bool claim_report() { return failed_ >= ranks_.rank && !is_reported_.exchange(true); }
  void limit_failure(const Failure& failure);
  void look_for_peers(bool is_waiting, double now);
  /// Prints the lines, tells the other ranks if there are any, and ends the program.
  [[noreturn]] void end_all(const Lines& lines);

  MpiGroup ranks_;
  std::vector<RankPlacement> placements_;
  NodePeers peers_;
  RankState own_;
  Heartbeat heartbeat_;
  std::list<Letter> sending_;
  Letter arriving_;
  std::size_t sent_ = 0;
  std::chrono::steady_clock::time_point sends_until_ = std::chrono::steady_clock::time_point::max();
  double gone_at_;  ///< since when a peer has been seen to be gone, in seconds; infinity if none is
  std::atomic<double> limit_{std::chrono::duration<double>(default_time_limit).count()};  ///< in seconds
  std::atomic<std::size_t> step_{0};
  std::atomic<bool> fails_{false};        ///< this rank ends because of an error
  std::atomic<bool> is_reported_{false};  ///< a thread prints it, or has
  std::atomic<std::size_t> failed_;       ///< Heartbeat::failed()
};

}  // namespace mylos::parallel
