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

/// The interface between a launch and the library over which its ranks communicate.
class RankRuntime {
 public:
  virtual ~RankRuntime() = default;

  virtual std::string library() const = 0;
  /// The library's thread support: "MPI_THREAD_MULTIPLE".
  virtual std::string thread_level() const = 0;
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  /// The lowest rank on this rank's node.
  virtual std::size_t first_rank_of_node() const = 0;
  /// Returns the bytes of all ranks, which must be equally many, in the order of ranks. Only before start().
  virtual std::vector<std::byte> gather(std::span<const std::byte> mine) = 0;

  /// Point-to-point messages with a time limit, because the other rank may never answer. Between two ranks they arrive
  /// in the order in which they were sent. Only before start(). After `limit`, send returns false and receive returns
  /// nullopt.
  virtual bool send(std::span<const std::byte> message, std::size_t to, std::chrono::duration<double> limit) = 0;
  virtual std::optional<std::vector<std::byte>> receive(std::size_t from, std::chrono::duration<double> limit) = 0;

  /// Returns the communicator of all ranks, which are at `placements`. `neighbours` are the ranks whose processes are
  /// visible from this one. `ranks_a_processor`: see processors.hpp.
  virtual Communicator& start(const std::vector<RankPlacement>& placements, std::span<const NodePeer> neighbours,
                              std::size_t ranks_a_processor) = 0;
  /// See Launch. Only after start().
  virtual std::unique_ptr<Communicator> make_nccl_ranks(const DeviceSums& sums) = 0;
  virtual void set_time_limit(std::chrono::duration<double> limit) = 0;
  virtual void note_step(std::size_t step) = 0;
  /// See Launch. Only after start().
  virtual bool announce_error() = 0;
  /// Waits for all ranks, then ends the library. If the library hangs in its end, the process ends with `exit_code`.
  virtual void finish(int exit_code) = 0;
  /// Ends the library without waiting for ranks that do not end soon too.
  virtual void abandon() = 0;
};

/// Returns the runtime of MPI, or that of a single process in a build without MPI. A call into the library
/// that waits for other ranks for longer than `limit` ends the process with one line. Errors: std::runtime_error if the
/// library cannot start.
std::unique_ptr<RankRuntime> make_rank_runtime(std::chrono::duration<double> limit);

}  // namespace mylos::parallel
