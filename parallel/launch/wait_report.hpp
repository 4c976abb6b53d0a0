#pragma once

#include "parallel/launch/launch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
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

}  // namespace mylos::parallel
