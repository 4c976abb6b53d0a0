#pragma once

#include "parallel/launch/launch.hpp"
#include "parallel/launch/node_peers.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mylos::parallel {

/// What a launch needs of the library that its ranks talk through.
class RankRuntime {
 public:
  virtual ~RankRuntime() = default;

  virtual std::string library() const = 0;
  /// What threads of a process may do with it: "MPI_THREAD_MULTIPLE".
  virtual std::string thread_level() const = 0;
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  /// The lowest rank on this rank's node.
  virtual std::size_t first_rank_of_node() const = 0;
  /// What each rank gave, equally many bytes, in the order of ranks. Before start() only.
  virtual std::vector<std::byte> gather(std::span<const std::byte> mine) = 0;

  /// Messages that a rank waits for no longer than `limit`, where another may never come; before start() only, and
  /// between two ranks in the order in which they were sent. False and nothing after that time.
  virtual bool send(std::span<const std::byte> message, std::size_t to, std::chrono::duration<double> limit) = 0;
  virtual std::optional<std::vector<std::byte>> receive(std::size_t from, std::chrono::duration<double> limit) = 0;

  /// Makes the communicator of all ranks, which are at `placements`; `neighbours` are those whose processes this one
  /// sees. `ranks_a_processor`: see processors.hpp.
  virtual Communicator& start(const std::vector<RankPlacement>& placements, std::span<const NodePeer> neighbours,
                              std::size_t ranks_a_processor) = 0;
  /// See Launch. After start().
  virtual std::unique_ptr<Communicator> make_nccl_ranks(bool ordered_sums) = 0;
  virtual void set_time_limit(std::chrono::duration<double> limit) = 0;
  virtual void note_step(std::size_t step) = 0;
  /// See Launch. After start().
  virtual bool announce_error() = 0;
  /// Ends the library when all ranks have come to their end.
  virtual void finish() = 0;
  /// The same, without the ranks that do not come to their end at once.
  virtual void abandon() = 0;
};

/// MPI, or a process alone in a build without. Errors: std::runtime_error where it cannot start.
std::unique_ptr<RankRuntime> make_rank_runtime();

}  // namespace mylos::parallel
