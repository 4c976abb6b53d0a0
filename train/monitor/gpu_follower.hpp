#pragma once

#include "train/monitor/gpu_record.hpp"

#include <string>
#include <utility>

namespace mylos::train {

/// The mean of the values that are present.
class Mean {
 public:
  void add(const std::optional<double>& value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }

 private:
  double sum_ = 0.0;
  std::size_t count_ = 0;
};

/// Follows the GPUs of a run: their current state, and their energy since the run was first started.
class GpuFollower {
 public:
  struct Gpu {
    GpuReading last;
    double time = 0.0;  ///< time of the last reading, in seconds since 1970
    GpuEnergy energy;
    Mean utilization, memory, power;  ///< means over the samples read by the last update
  };
  using Gpus = std::map<std::pair<std::string, std::size_t>, Gpu>;  ///< by node and index

  explicit GpuFollower(const std::filesystem::path& run) : reader_(run) {}

  void update();
  const Gpus& gpus() const { return gpus_; }
  /// Returns the energy of all GPUs; nullopt if no GPU reports it.
  std::optional<double> joules() const;

 private:
  GpuRecordReader reader_;
  Gpus gpus_;
};

}  // namespace mylos::train
