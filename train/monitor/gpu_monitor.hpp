#pragma once

#include "parallel/launch/launch.hpp"
#include "train/engine/report.hpp"
#include "train/monitor/nvml.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mylos::train {

/// Between two samples: 5 s, and from 16 nodes on longer, up to a minute, so that the nodes together do not write more.
std::chrono::duration<double> gpu_sample_interval(std::size_t nodes);

/// The name of a node's file: its host's, with the node's number where several nodes call themselves so.
std::string gpu_node_name(std::span<const parallel::RankPlacement> placements, std::size_t rank);

/// A line for each reason, with the nodes of which it stands, where `obstacles` of every rank say why its node is not
/// watched.
std::vector<std::string> unwatched_lines(std::span<const std::string> obstacles);

/// Writes what this run's GPUs do into gpus/<node>.jsonl (train/monitor/gpu_record.hpp) in a thread of its own, which
/// makes no call of MPI and takes no signal. Of each node's ranks the first writes, for all GPUs that it sees; where a
/// batch system shows each rank only its own, each writes for that, appending to the same file. GPUs are counted in the
/// order of the ranks that compute on them. Nothing here ends a run: what fails is said in one line.
class GpuMonitor final : public Reporter {
 public:
  struct Settings {
    std::chrono::duration<double> interval;
    std::function<void(const std::string&)> log;  ///< called by the thread, too
    std::string library = Nvml::usual_file;
    std::chrono::duration<double> longest_wait{5.0};  ///< at the end, for a driver or a disk that hangs
  };

  /// Of the run in the directory `run`. Ranks without a device have nothing to watch.
  GpuMonitor(const std::filesystem::path& run, std::span<const parallel::RankPlacement> placements, std::size_t rank,
             Settings settings);
  /// Ends the thread, also where finish() was not called; one that does not come to its end is left behind.
  ~GpuMonitor() override;
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// Why this rank's node is not watched; empty where it is, or another rank tells.
  const std::string& obstacle() const { return obstacle_; }
  /// This rank writes.
  bool writes() const { return work_ != nullptr; }

  void start(const RunStart& run) override;
  void step(const StepReport& report) override;
  /// After the last sample.
  void finish() override;

 private:
  struct Work;
  void note_step(std::size_t step);

  std::shared_ptr<Work> work_;  ///< the thread's, too
  std::string obstacle_;
};

}  // namespace mylos::train
