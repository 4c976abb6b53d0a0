#pragma once

#include "train/monitor/gpu_record.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace mylos::train {

/// The mean and the range of the values that are present.
class Statistics {
 public:
  void add(const std::optional<double>& value) {
    if (value) add({*value, *value, *value, 1});
  }
  void add(const Statistics& others) {
    if (others.count_ == 0) return;
    least_ = count_ > 0 ? std::min(least_, others.least_) : others.least_;
    peak_ = count_ > 0 ? std::max(peak_, others.peak_) : others.peak_;
    sum_ += others.sum_;
    count_ += others.count_;
  }
  bool empty() const { return count_ == 0; }
  /// The others return 0 if there is no value.
  double mean() const { return empty() ? 0.0 : sum_ / static_cast<double>(count_); }
  double least() const { return least_; }
  double peak() const { return peak_; }

  Statistics() = default;

 private:
  Statistics(double sum, double least, double peak, std::size_t count)
      : sum_(sum), least_(least), peak_(peak), count_(count) {}

  double sum_ = 0.0, least_ = 0.0, peak_ = 0.0;
  std::size_t count_ = 0;
};

/// Statistics of each of quantities<Reading>.
template <class Reading>
struct QuantityStatistics : std::array<Statistics, quantities<Reading>.size()> {
  void add(const Reading& reading) {
    for (std::size_t i = 0; i < this->size(); ++i) (*this)[i].add(reading.*quantities<Reading>[i].field);
  }
  void add(const QuantityStatistics& others) {
    for (std::size_t i = 0; i < this->size(); ++i) (*this)[i].add(others[i]);
  }
};

/// Readings of a node or a GPU.
template <class Reading>
struct Followed {
  Reading last = {};
  double time = 0.0;                        ///< time of the last reading, in seconds since 1970
  QuantityStatistics<Reading> recent = {};  ///< over the samples read by the last update
  QuantityStatistics<Reading> whole = {};   ///< over all samples, of all starts of the run

  void add(const Reading& reading, double at) {
    last = reading;
    time = at;
    recent.add(reading);
    whole.add(reading);
  }
};

/// Follows the nodes and GPUs of a run: their current state, and their energy since the run was first started.
class GpuFollower {
 public:
  struct Gpu : Followed<GpuReading> {
    GpuEnergy energy;
  };
  using Gpus = std::map<std::pair<std::string, std::size_t>, Gpu>;  ///< by node and index
  using Nodes = std::map<std::string, Followed<NodeReading>>;       ///< without nodes that only have GPUs recorded

  explicit GpuFollower(const std::filesystem::path& run) : reader_(run) {}

  void update();
  const Gpus& gpus() const { return gpus_; }
  const Nodes& nodes() const { return nodes_; }
  /// Returns the energy of all GPUs; nullopt if no GPU reports it.
  std::optional<double> joules() const;

 private:
  GpuRecordReader reader_;
  Gpus gpus_;
  Nodes nodes_;
};

}  // namespace mylos::train
