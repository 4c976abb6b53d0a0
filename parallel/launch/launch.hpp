#pragma once

#include "core/device.hpp"
#include "parallel/communicator/communicator.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The ranks that were launched together: MPI where the build has it, a group of one where it has not. Nothing is taken
/// from options: sizes and placements come from MPI and from the processors each process may run on.
namespace mylos::parallel {

/// Where a rank runs.
struct RankPlacement {
  std::string host;              ///< as the batch system calls it
  long process = 0;              ///< its id on that host
  std::size_t node = 0;          ///< counted from 0 in the order of each node's lowest rank
  std::size_t rank_of_node = 0;  ///< among the ranks of its node
  std::string device = {};       ///< the id of the one it computes on (core/device.hpp); empty in a host build
  std::string device_name =
      {};                       ///< "GPU 0 NVIDIA A100-SXM4-80GB", its index as this rank counts; empty in a host build
  std::string processors = {};  ///< that it may run on, "0-7"
  std::string job = {};         ///< of the batch system (launcher.hpp); empty outside of one
  bool has_nccl = false;        ///< of several ranks: it has a device, and found NCCL's library
};

/// Whether this build has MPI; without it every launch is one rank.
bool has_mpi();

/// Errors: std::runtime_error that says what to change where two ranks compute on one device.
void check_devices_apart(const std::vector<RankPlacement>& placements);

/// The one of the devices that a process sees, which are not none, that a rank of this position on its node takes.
const DeviceInfo& device_of_rank(std::span<const DeviceInfo> devices, std::size_t rank_of_node);

/// MPI from its making to its end. Made once a process, before Kokkos, and outlives all communicators.
class Launch {
 public:
  /// Errors: std::runtime_error that says what to change: a launcher whose size is not MPI's, ranks pinned to the same
  /// core; those of usable_devices.
  Launch();
  /// Ends MPI; where an exception is under way, without the ranks that do not end too.
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Communicator& world();
  /// All ranks, with device arrays going through NCCL (see make_nccl_communicator); of one rank, too. It goes before
  /// this launch. Errors: std::runtime_error that says what to change where the build or the machine has no NCCL, or
  /// ranks share a device.
  std::unique_ptr<Communicator> make_nccl_ranks(bool ordered_sums);
  /// What carries device arrays between ranks from here on, before the first of them. `name` is what --communicator
  /// takes: "auto", what choose_communicator takes; "mpi", where ranks may share a device; "nccl", where world() is
  /// from here on what make_nccl_ranks gives (what it was stays valid; one rank exchanges nothing). Returns a line for
  /// the run's log, empty where there is nothing to say, the same on all ranks. Not collective. Errors:
  /// std::runtime_error as above, the same on all ranks but where a single machine lacks NCCL.
  std::string use_communicator(std::string_view name, bool ordered_sums);
  /// Of every rank.
  const std::vector<RankPlacement>& placements() const;
  const RankPlacement& placement() const;
  std::size_t nodes() const;
  /// Ranks on this rank's node.
  std::size_t ranks_of_node() const;
  /// Threads for this rank: OMP_NUM_THREADS where it is set, else the processors it may run on, divided among the ranks
  /// that may run on them too; at least one.
  std::size_t threads() const;
  /// The index of this rank's device: the one that it sees, or of several that of its position on the node. 0 in a host
  /// build.
  std::size_t device() const;
  /// How long a rank waits for others in one operation before the program ends on every rank, with lines that say who
  /// is missing and what each waits in; 10 minutes at first.
  void set_time_limit(std::chrono::duration<double> limit);
  /// What those lines say of this rank from here on; counted from 1.
  void note_step(std::size_t step);
  /// Announces to the other ranks that this one ends because of an error, so that the program prints one line. Returns
  /// whether this rank is to print its error: false where a lower rank announced one at about the same time.
  bool announce_error();
  /// "Open MPI v4.1.4"; "none" in a build without MPI.
  const std::string& library() const;

 private:
  struct State;
  /// Each rank's into its position.
  void gather_devices();

  std::unique_ptr<State> state_;
};

/// How ranks form groups: `shard` ranks split what `replicate` groups hold copies of. world = replicate x shard.
class Mesh {
 public:
  /// Groups of `shard_size` neighbouring ranks. Errors: std::runtime_error where it does not divide their number.
  Mesh(Communicator& world, std::size_t shard_size);

  Communicator& world() const { return world_; }
  Communicator& shard() const { return *shard_; }
  Communicator& replicate() const { return *replicate_; }

 private:
  Communicator& world_;
  std::unique_ptr<Communicator> shard_, replicate_;
};

}  // namespace mylos::parallel
