#pragma once

#include "core/base/options/walltime.hpp"
#include "parallel/launch/launch.hpp"
#include "train/engine/report.hpp"
#include "train/monitor/gpu_library.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mylos::train {

/// Returns the time between samples. It is 5 s for up to 16 nodes. With more nodes, it grows up to a minute, so that
/// the total rate of writes over all nodes stays the same.
std::chrono::duration<double> gpu_sample_interval(std::size_t nodes);

/// Opens the library of the vendor of a device: ids of AMD's GPUs begin with an address on the PCI bus.
std::unique_ptr<const GpuLibrary> open_gpu_library(const std::string& device);

/// Returns the name of a node's file: its host name, followed by the node's number if several nodes have this host
/// name.
std::string gpu_node_name(std::span<const parallel::RankPlacement> placements, std::size_t rank);

/// Returns one line for each distinct obstacle, with the number of affected nodes. `obstacles` holds the
/// GpuMonitor::obstacles of each rank.
std::vector<std::string> unwatched_lines(std::span<const std::string> obstacles);

/// Writes samples of the run's nodes and GPUs to gpus/<node>.jsonl (train/monitor/gpu_record.hpp) in its own thread,
/// which makes no MPI calls and receives no signals. The first rank of each node writes for the node and for all GPUs
/// that it sees; if a batch system shows each rank only its own GPU, each rank writes for that one, appending to the
/// same file. GPUs are numbered in the order of the ranks that compute on them. Errors never end a run: each is
/// reported in one line.
class GpuMonitor final : public Reporter {
 public:
  struct Settings {
    std::chrono::duration<double> interval;
    std::function<void(const std::string&)> log;  ///< also called by the thread
    std::function<std::unique_ptr<const GpuLibrary>(const std::string& device)> open = open_gpu_library;
    std::chrono::duration<double> longest_wait{5.0};  ///< seconds to wait at the end for a hanging driver or disk
    /// Also writes GPUs there, see GpuLog. With several nodes, each has a file of its own. Empty: nowhere.
    std::filesystem::path gpu_log = {};
    std::filesystem::path system = "/";  ///< directory of proc/ and sys/
    RunProgram scontrol = output_of;  ///< asks Slurm for the node's power; only up to 16 nodes ask their one controller
  };

  /// Monitors the run in directory `run`. Ranks without a device have no GPU to watch.
  GpuMonitor(const std::filesystem::path& run, std::span<const parallel::RankPlacement> placements, std::size_t rank,
             Settings settings);
  /// Ends the thread, even if finish() was not called. A thread that does not end in time is abandoned.
  ~GpuMonitor() override;
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// Returns a line for everything of this node that is not watched, with "{nodes}" for the number of nodes. Empty if
  /// another rank of the node reports them.
  const std::string& obstacles() const { return obstacles_; }
  /// Returns whether this rank writes samples.
  bool writes() const { return work_ != nullptr; }

  void start(const RunStart& run) override;
  void step(const StepReport& report) override;
  /// Returns after the last sample was written.
  void finish() override;

 private:
  struct Work;
  void note_step(std::size_t step);

  std::shared_ptr<Work> work_;  ///< shared with the thread
  std::string obstacles_;
};

}  // namespace mylos::train
