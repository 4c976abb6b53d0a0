#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the GPUs of a run did: gpus/<node>.jsonl in its output directory, written by the run's nodes while it goes on.
/// A line is {"time", "step", "gpus": [{"index", "name", "utilization", "memory", "memory_total", "power", "energy"}]};
/// what a GPU's driver does not tell is not there.
namespace mylos::train {

inline constexpr const char* gpu_records_name = "gpus";

struct GpuReading {
  std::size_t index = 0;  ///< on its node
  std::string name = {};
  std::optional<double> utilization = {};  ///< percent of the last moments in which something ran
  std::optional<double> memory = {};       ///< bytes in use
  std::optional<double> memory_total = {};
  std::optional<double> power = {};   ///< watts
  std::optional<double> energy = {};  ///< joules since this start of the run
};

struct GpuSample {
  double time = 0.0;     ///< seconds since 1970
  std::size_t step = 0;  ///< done by then
  std::vector<GpuReading> gpus;
};

/// With its line end.
std::string to_line(const GpuSample& sample);

/// Follows the files of a run while they grow. What is not a whole line yet is left for the next time, what is none of
/// ours is passed over, and files that cannot be read count as empty.
class GpuRecordReader {
 public:
  using Take = std::function<void(const std::string& node, const GpuSample& sample)>;

  explicit GpuRecordReader(const std::filesystem::path& run) : directory_(run / gpu_records_name) {}

  /// Gives what was added since the last time, node by node, each one's in the order of its file.
  void read(const Take& take);
  /// Whether a file has become shorter, because another run is there now. What was given is then void, and the next
  /// read() gives everything.
  bool begins_anew();

 private:
  std::filesystem::path directory_;
  std::map<std::filesystem::path, std::uintmax_t> offsets_;
};

/// Energy of one GPU over all starts of a run, each of which counts from 0.
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

/// One GPU of a run.
struct GpuSeries {
  struct Point {
    double time = 0.0;     ///< seconds since 1970
    std::size_t step = 0;  ///< goes back where the run was started again from a checkpoint
    GpuReading reading;
  };

  std::string node;
  std::size_t index = 0;
  std::vector<Point> points;  ///< in the order of time, of all starts
  GpuEnergy energy;
};

/// All of a run's, by node and index; none where it did not compute on GPUs.
std::vector<GpuSeries> read_gpu_samples(const std::filesystem::path& run);

}  // namespace mylos::train
