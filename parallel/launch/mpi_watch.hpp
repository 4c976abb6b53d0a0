#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/mpi_messages.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/launch/node_peers.hpp"
#include "parallel/launch/wait_report.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// A RankState as it travels.
struct RankMessage {
  bool question = false;
  bool error = false;  ///< the rank ends because of an error, and no more is known
  RankState::Activity activity = RankState::Activity::silent;
  std::uint64_t step = 0, bytes = 0, group = 0, sequence = 0;
  double seconds = 0.0, file_seconds = 0.0;
  std::array<char, 160> operation{};
};

/// Ends the program on every rank where one does not come: a rank of this node whose process has ended is seen at once;
/// for others, each rank that has waited for the time limit asks all what they do, which their communication threads
/// answer also while they compute, and tells who is missing. A stopped process does not answer. Time in which a rank
/// that answers worked with files does not count.
class MpiWatch final : public Watch {
 public:
  /// `ranks`: all of them, in a group that nobody else sends messages in.
  MpiWatch(const MpiGroup& ranks, std::vector<RankPlace> places, std::span<const NodePeer> peers);

  void look(const Waiting& waiting) override;

  void set_time_limit(std::chrono::duration<double> limit) { limit_ = limit.count(); }
  void note_step(std::size_t step) { step_ = step; }
  /// Tells the other ranks, through the communication thread, that this one ends because of an error, so that they do
  /// not report that it is gone. Returns whether this rank is the one to print its error: false where a lower rank has
  /// an error at about the same time. Called by another thread than the communication thread.
  bool announce_error();

 private:
  using Clock = std::chrono::steady_clock;

  struct Sent {
    RankMessage message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  RankState state_of(const Waiting& waiting) const;
  void send(std::size_t rank, const RankMessage& message);
  void receive_all(const Waiting& waiting);
  void ask_all(const Waiting& waiting);
  void look_for_peers(const Waiting& waiting);
  bool is_excused(const Waiting& waiting);
  void look_at_limit(const Waiting& waiting);
  [[noreturn]] void end_all(const std::vector<std::string>& lines) const;

  MpiGroup ranks_;
  std::vector<RankPlace> places_;
  NodePeers peers_;
  std::atomic<double> limit_{600.0};  ///< seconds
  std::atomic<std::size_t> step_{0};
  std::atomic<bool> has_error_{false}, announced_{false};
  std::atomic<std::size_t> failed_;  ///< the lowest rank that has announced an error; the number of ranks: none has

  std::vector<RankState> states_;
  bool asked_ = false;
  std::uint64_t asked_group_ = 0, asked_sequence_ = 0;
  Clock::time_point asked_at_;
  double excused_ = 0.0;  ///< seconds that do not count of the wait that was asked about
  bool peers_gone_ = false;
  Clock::time_point gone_at_;
  std::list<Sent> sent_;
};

}  // namespace mylos::parallel
