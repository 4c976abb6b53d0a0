#pragma once

#include "core/base/options/walltime.hpp"
#include "train/monitor/gpu_record.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What this node does, from files of the system that any user may read. Other programs on the node count, too.
namespace mylos::train {

/// Returns the watts that Slurm's `scontrol show node` reports; nullopt if it reports none, or 0.
std::optional<double> scontrol_watts(const std::string& output);

class NodeMeter {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Finds the sources. `root` is the directory of proc/ and sys/. The power is that of the first source that can be
  /// read: Cray's counters, RAPL, power meters of hwmon, and Slurm, which `scontrol` asks. Without `scontrol` Slurm is
  /// not asked.
  explicit NodeMeter(std::filesystem::path root = "/", const RunProgram& scontrol = {});

  /// Reads the node at time `now` of a steady clock. CPU and RAPL's power are means since the last reading at least 0.1
  /// s ago; without one, they are left out.
  NodeReading read(Seconds now);
  /// One line for each value without a source, with "{nodes}" for the number of nodes that say the same.
  const std::vector<std::string>& obstacles() const { return obstacles_; }

 private:
  /// Returns watts at a time; nullopt if they cannot be read.
  using PowerMeter = std::function<std::optional<double>(Seconds now)>;
  struct ProcessorTimes {
    double busy = 0.0, total = 0.0;
    Seconds time{};
  };

  std::optional<double> read_cpu(Seconds now);
  void read_memory(NodeReading& reading) const;
  void find_power(const RunProgram& scontrol);

  std::filesystem::path root_;
  std::optional<ProcessorTimes> last_;
  PowerMeter power_;
  std::string power_source_;
  std::vector<std::string> obstacles_;
};

}  // namespace mylos::train
