#pragma once

#include "parallel/launch/launch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// The activity of a rank while others wait, as ranks send it to each other.
struct RankState {
  /// In this order they count as the cause of a wait.
  enum class Activity : std::uint8_t { silent, files, computing, waiting };

  Activity activity = Activity::silent;
  std::size_t step = 0;               ///< 0 before the first step
  std::array<char, 160> operation{};  ///< "all-reduce of layer 3 gradients", which it waits in or finished last; the
                                      ///< same on every rank, and cut if it is longer
  std::size_t bytes = 0;              ///< bytes of that operation
  std::uint64_t group = 0;            ///< identifies the ranks that take part in it
  std::uint64_t sequence = 0;         ///< number of earlier operations of that group
  double seconds = 0.0;               ///< how long it has waited, computed or worked with files
  double file_seconds = 0.0;          ///< part of `seconds` in which it worked with files (FileWork)
  double progress_seconds = 0.0;      ///< part of `file_seconds` until its last progress
};

/// Describes where a rank is: "step 31, all-reduce of layer 3 gradients, 28.0 MiB".
std::string activity_text(const RankState& state);

/// Returns the seconds beyond `limit` for which ranks wait for others that worked with files in the meantime: the time
/// of that work, except that without progress for file_patience limits the file system is assumed to hang.
double excused_seconds(std::span<const RankState> ranks, double limit);
inline constexpr double file_patience = 6.0;

/// Explains why `rank` waits: first one line that names the missing ranks, then one line per rank.
std::vector<std::string> describe_wait(std::span<const RankState> ranks, std::span<const RankPlacement> placements,
                                       std::size_t rank);

/// The message that ranks send each other.
struct Beat {
  RankState state;         ///< of the sender
  std::size_t failed = 0;  ///< the lowest rank known to end because of an error; the number of ranks if none is known
};

/// Returns how much later than the first one the rank at `place` tells what several see, in seconds. The one that tells
/// ends the others.
double turn_of(std::size_t place, double limit);

/// One rank's part in finding out which ranks are missing, independent of the library that carries the messages.
///
/// In a healthy run no rank sends anything. A rank that has waited for the limit sends a beat to the first rank every
/// `patience` (1 to 10 s, and 1 ms for each rank). The first rank then sends one to all, at most one in that time, and
/// each answers, also while it computes. If all answer and the time that ranks worked with files excuses the waits,
/// they go on. Otherwise, if a rank has still waited too long after `patience`, the first rank ends the program. That
/// takes three messages a rank. If the first rank sends nothing for twice that time, the ranks that wait end the
/// program. A rank that ends because of an error tells the first rank, which tells all; the lowest that ends prints its
/// error.
class Heartbeat {
 public:
  using Send = std::function<void(std::size_t to, const Beat& beat)>;
  /// The time of a call and the limit of a wait, both in seconds; this rank's state, and whether it ends.
  struct Moment {
    double now, limit;
    const RankState& own;
    bool ends = false;
  };

  Heartbeat(std::size_t size, std::size_t rank, Send send);

  void receive(std::size_t from, const Beat& beat, const Moment& moment);
  /// Called regularly, after all arrived messages have been received.
  void look(const Moment& moment);
  /// Tells every rank that this one ends the program.
  void tell_all(const RankState& own);

  /// The lowest rank that has waited too long, if this rank is to end the program. On the first rank `states` then
  /// holds the state of each rank. On another rank it is the rank itself, and the first rank does not answer.
  std::optional<std::size_t> late() const { return late_; }
  const std::vector<RankState>& states() const { return states_; }
  /// The lowest rank known to end because of an error; the number of ranks if none is known.
  std::size_t failed() const { return failed_; }

 private:
  void note_failure(std::size_t failed, double now);
  void decide(const Moment& moment, double patience);
  void send(const RankState& own, bool to_all);

  std::size_t size_, rank_, failed_, told_;  ///< told_: the value of failed_ when it was last told
  Send send_;
  double looked_ = std::numeric_limits<double>::infinity();  ///< when it looked last
  double sent_ = -looked_;                                   ///< when it sent a beat because of a wait
  double heard_ = sent_;                                     ///< when the first rank was last known to answer
  double quiet_until_ = sent_;                               ///< until then a rank that ends has time to do so
  double excused_ = 0.0, excused_at_ = sent_;  ///< seconds that the last decision excused, and when that was
  bool is_asked_ = false, is_late_ = false, is_deciding_ = false;
  std::vector<RankState> states_;
  std::optional<std::size_t> late_;
};

}  // namespace mylos::parallel
