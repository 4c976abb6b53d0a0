#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// What a rank is known to do while others wait.
struct RankState {
  enum class Activity { silent, computing, files, waiting };

  std::string host;
  Activity activity = Activity::silent;
  std::size_t step = 0;   ///< 0 before the first
  std::string operation;  ///< the same on every rank of it; that it waits in, or the last one it ended: "all-reduce of
                          ///< layer 3 gradients"
  std::size_t bytes = 0;  ///< of that operation
  std::uint64_t group = 0;     ///< the ranks that take part in it
  std::uint64_t sequence = 0;  ///< operations of that group before it
  double seconds = 0.0;        ///< that it has waited, or computed or worked with files
  double file_seconds = 0.0;   ///< of them, those in which it worked with files (FileWork)
};

/// "step 31, all-reduce of layer 3 gradients, 28.0 MiB"
std::string place_of(const RankState& state);

/// How much longer than `limit` seconds others wait for ranks that worked with files meanwhile: as long as those did,
/// but no more than file_patience limits, after which a file system is taken to hang.
double excused_seconds(std::span<const RankState> ranks, double limit);
inline constexpr double file_patience = 6.0;

/// Why `rank`, which waits, waits: first one line that names the ranks that have not come, then one for each rank.
std::vector<std::string> describe_wait(std::span<const RankState> ranks, std::size_t rank);

}  // namespace mylos::parallel
