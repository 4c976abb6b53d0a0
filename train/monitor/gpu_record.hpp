#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Records of a run's nodes and GPUs: gpus/<node>.jsonl in its output directory, written by each node during the run.
/// Each line is {"time", "step", "node": {"cpu", "memory", "power", "memory_total", "power_source"}, "gpus": [{"index",
/// "name", "utilization", "memory", "memory_utilization", "power", "memory_total", "energy"}]}. Values that the system
/// or the GPU's driver does not report are left out. Only the first rank of a node writes "node".
namespace mylos::train {

inline constexpr const char* gpu_records_name = "gpus";

struct GpuReading {
  std::size_t index = 0;  ///< index on its node
  std::string name = {};
  std::optional<double> utilization = {};         ///< percent of the last sampling period in which a kernel ran
  std::optional<double> memory_utilization = {};  ///< percent of that period in which memory was read or written
  std::optional<double> memory = {};              ///< bytes in use
  std::optional<double> memory_total = {};
  std::optional<double> power = {};   ///< watts
  std::optional<double> energy = {};  ///< joules since this start of the run
};

/// What a node does, with all programs that run on it.
struct NodeReading {
  std::optional<double> cpu = {};           ///< percent of the time of all its processors since the last reading
  std::optional<double> memory = {};        ///< bytes that are not available to programs
  std::optional<double> memory_total = {};  ///< bytes
  std::optional<double> power = {};         ///< watts
  std::string power_source = {};            ///< what reports `power`: "RAPL"
};

enum class Unit : std::uint8_t { percent, bytes, watts };

/// A value of a reading that tables and charts show.
template <class Reading>
struct Quantity {
  const char* name;     ///< in records and charts
  const char* heading;  ///< in tables
  Unit unit;
  std::optional<double> Reading::*field;
};
template <class Reading>
inline constexpr std::array<Quantity<Reading>, 0> quantities;
template <>
inline constexpr std::array<Quantity<NodeReading>, 3> quantities<NodeReading> = {
    {{"cpu", "CPU", Unit::percent, &NodeReading::cpu},
     {"memory", "memory", Unit::bytes, &NodeReading::memory},
     {"power", "power", Unit::watts, &NodeReading::power}}};
template <>
inline constexpr std::array<Quantity<GpuReading>, 4> quantities<GpuReading> = {
    {{"utilization", "GPU", Unit::percent, &GpuReading::utilization},
     {"memory", "GPU memory", Unit::bytes, &GpuReading::memory},
     {"memory_utilization", "memory controller", Unit::percent, &GpuReading::memory_utilization},
     {"power", "GPU power", Unit::watts, &GpuReading::power}}};

struct GpuSample {
  double time = 0.0;     ///< in seconds since 1970
  std::size_t step = 0;  ///< steps completed at that time
  std::vector<GpuReading> gpus;
  std::optional<NodeReading> node = {};
};

/// Returns the sample as a line, with its newline.
std::string to_line(const GpuSample& sample);

/// Follows the files of a run as they grow. An incomplete line is left for the next call, lines in another format are
/// skipped, and files that cannot be read count as empty.
class GpuRecordReader {
 public:
  using Take = std::function<void(const std::string& node, const GpuSample& sample)>;

  explicit GpuRecordReader(const std::filesystem::path& run) : directory_(run / gpu_records_name) {}

  /// Passes the samples added since the last call to `take`, node by node, in the order of each file.
  void read(const Take& take);
  /// Returns true if a file has become shorter because another run has replaced it. The samples passed so far are then
  /// invalid, and the next read() passes all samples again.
  bool begins_anew();

 private:
  std::filesystem::path directory_;
  std::map<std::filesystem::path, std::uintmax_t> offsets_;
};

/// The energy of one GPU over all starts of a run. Readings of each start count from 0.
class GpuEnergy {
 public:
  void add(double since_start) {
    joules_ += since_start >= last_ ? since_start - last_ : since_start;
    last_ = since_start;
  }
  double joules() const { return joules_; }

 private:
  double joules_ = 0.0, last_ = 0.0;
};

constexpr double kilowatt_hours(double joules) { return joules / 3.6e6; }

/// The samples of one GPU of a run.
struct GpuSeries {
  struct Point {
    double time = 0.0;     ///< in seconds since 1970
    std::size_t step = 0;  ///< decreases when the run is restarted from a checkpoint
    GpuReading reading;
  };

  std::string node;
  std::size_t index = 0;
  std::vector<Point> points;  ///< in order of time, over all starts
  GpuEnergy energy;
};

/// Returns the series of all GPUs of a run, by node and index; empty if it did not compute on GPUs.
std::vector<GpuSeries> read_gpu_samples(const std::filesystem::path& run);

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
