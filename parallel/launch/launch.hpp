#pragma once

#include "core/device.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The ranks that were launched together: over MPI if the build has it, otherwise a group of one. Sizes and placements
/// come from MPI and from the processors that each process may use, never from options.
namespace mylos::parallel {

/// The node, processors and device of a rank.
struct RankPlacement {
  std::string host;              ///< the batch system's name of the node
  long process = 0;              ///< process id on that host
  std::size_t node = 0;          ///< node index, in the order of each node's lowest rank
  std::size_t rank_of_node = 0;  ///< index among the ranks of its node
  std::string device = {};       ///< id of the rank's device (core/device.hpp); empty in a host build
  std::string device_name = {};  ///< "GPU 0 NVIDIA A100-SXM4-80GB" with this rank's index of it; empty in a host build
  std::string processors = {};   ///< processors it may run on: "0-7"
  std::string job = {};          ///< batch job (launcher.hpp); empty outside of one
  std::string kind = {};         ///< what selects its kernels: "avx2 avx512f, OpenBLAS SkylakeX", or the GPU's name
  std::vector<std::uint64_t> visible_devices = {};  ///< hashes of the ids of devices that its process sees, at most 32
  bool has_nccl = false;  ///< it has a device and found NCCL's library; always false for a single rank
};

/// Returns true if this build has MPI; without it every launch has one rank.
bool has_mpi();

/// If this variable is set, NCCL connects ranks that share a device: for tests on a machine with one GPU, where each
/// rank also needs an NCCL_HOSTID of its own.
inline constexpr const char* share_gpus_variable = "MYLOS_SHARE_GPUS";

/// Checks that each rank has its own device. Errors: std::runtime_error that says what to change if two ranks share
/// one.
void check_devices_apart(const std::vector<RankPlacement>& placements);

/// Returns the device for a rank with this index on its node. `devices`, the devices that its process sees, must not be
/// empty.
const DeviceInfo& device_of_rank(std::span<const DeviceInfo> devices, std::size_t rank_of_node);

/// How long a rank waits for others by default.
inline constexpr std::chrono::minutes default_time_limit{10};

/// The library that exchanges arrays of devices between ranks.
struct CommunicatorChoice {
  bool nccl = false;            ///< otherwise MPI
  std::string remark = {};      ///< one line for the run's log; empty if there is no choice
  double bytes_per_second = 0;  ///< over NCCL, see Communicator::connect
};

/// Starts MPI and ends it. Create one object per process, before Kokkos is initialised; it must outlive all
/// communicators.
class Launch {
 public:
  /// `limit`: see set_time_limit; it also holds while MPI starts. Errors: std::runtime_error that says what to change,
  /// if the launcher's number of ranks differs from MPI's, if ranks are pinned to the same core, or if usable_devices
  /// fails.
  explicit Launch(std::chrono::duration<double> limit = default_time_limit);
  /// Ends MPI. During stack unwinding, does not wait for ranks that do not end too. If MPI hangs in its end although
  /// all ranks have come to theirs, the process ends with the code of set_exit_code, and one line.
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Communicator& world();
  /// Returns a communicator of all ranks whose device arrays go through NCCL (see make_nccl_communicator); also works
  /// for one rank. It must be destroyed before this object. Errors: std::runtime_error that says what to change if the
  /// build or the machine has no NCCL, or if ranks share a device.
  std::unique_ptr<Communicator> make_nccl_ranks(const DeviceSums& sums);
  /// Selects how device arrays are exchanged between ranks. Call it before the first exchange of one, and after Kokkos
  /// is initialised. `name` is the value of --communicator. "mpi": ranks may share a device. "nccl": connects the
  /// devices and proves that they exchange correctly (Communicator::connect); world() then returns the communicator of
  /// make_nccl_ranks, and the previous one remains valid. A single rank exchanges nothing. "auto": NCCL if every rank
  /// has it and the proof holds, otherwise MPI, with a remark that says why. Collective; returns the same on all ranks.
  /// Errors: SharedError if the name is unknown, if ranks share a device, or if "nccl" cannot be used.
  const CommunicatorChoice& use_communicator(std::string_view name, const DeviceSums& sums);
  /// The result of use_communicator; MPI without a remark before it is called.
  const CommunicatorChoice& communicator() const;
  /// The placement of each rank.
  const std::vector<RankPlacement>& placements() const;
  const RankPlacement& placement() const;
  std::size_t nodes() const;
  /// The number of ranks on this rank's node.
  std::size_t ranks_of_node() const;
  /// The number of threads for this rank: OMP_NUM_THREADS if it is set, otherwise the processors that this rank may
  /// use, divided among the ranks that may use them too; at least one.
  std::size_t threads() const;
  /// The index of this rank's device: the only one that it sees, or the one selected by device_of_rank. 0 in a host
  /// build.
  std::size_t device() const;
  /// Sets how long a rank waits for others in one operation. After that the program ends on every rank, with lines that
  /// say which ranks are missing and what each waits for.
  void set_time_limit(std::chrono::duration<double> limit);
  /// Sets the exit code with which the program is about to end; 0 by default.
  void set_exit_code(int exit_code);
  /// Sets the step that those lines show for this rank; steps count from 1.
  void note_step(std::size_t step);
  /// Announces to the other ranks that this one ends because of an error, so that the program prints one line. Returns
  /// true if this rank should print its error, and false if a lower rank announced one at about the same time.
  bool announce_error();
  /// The version of the MPI library: "Open MPI v4.1.4"; "none" in a build without MPI.
  const std::string& library() const;

 private:
  struct State;
  /// Returns the choice of a name before the devices are connected.
  CommunicatorChoice choose(std::string_view name) const;
  /// Lets world() exchange through NCCL if the devices can be connected. `name` is the value of --communicator.
  CommunicatorChoice connect_nccl(std::string_view name, const DeviceSums& sums);
  /// Stores the device of each rank in its placement.
  void gather_devices();

  std::unique_ptr<State> state_;
};

/// Divides the ranks into groups. The ranks of a `shard` group split a state. The ranks of a `replicate` group hold
/// copies of the same part of it. world = replicate x shard.
class Mesh {
 public:
  /// Creates groups of `shard_size` consecutive ranks. Errors: std::runtime_error if it does not divide the number of
  /// ranks.
  Mesh(Communicator& world, std::size_t shard_size);

  /// Connects the devices of all three groups, see Communicator::connect. Collective.
  void connect(const ExecutionSpace& space);

  Communicator& world() const { return world_; }
  Communicator& shard() const { return *shard_; }
  Communicator& replicate() const { return *replicate_; }

 private:
  Communicator& world_;
  std::unique_ptr<Communicator> shard_, replicate_;
};

}  // namespace mylos::parallel
