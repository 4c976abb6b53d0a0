#include "train/monitor/gpu_monitor.hpp"

#include "core/base/error.hpp"
#include "core/base/process/process.hpp"
#include "core/base/process/threads.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/quantities.hpp"
#include "train/monitor/gpu_log.hpp"
#include "train/monitor/gpu_record.hpp"
#include "train/monitor/node_meter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using parallel::RankPlacement;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::duration<double> usual_interval(5.0), longest_interval(60.0);
constexpr std::size_t nodes_without_wait = 16;

}  // namespace

/// A GPU of this node, and its energy since the start of the run. In no anonymous namespace because GpuMonitor::Work,
/// which is declared in a header, has a vector of them.
class GpuMeter {
 public:
  GpuMeter(const GpuLibrary& library, GpuLibrary::Device device, std::size_t index)
      : library_(&library), device_(device), index_(index), name_(library.name(device)) {}

  std::size_t index() const { return index_; }

  /// Errors: those of GpuLibrary::read.
  GpuReading read() {
    GpuReading now = library_->read(device_);
    add_energy(now, Clock::now());
    const bool counts = now.energy || now.power || joules_ > 0.0;
    now.index = index_;
    now.name = name_;
    now.energy = counts ? std::optional(joules_) : std::nullopt;
    return now;
  }

 private:
  /// Adds the energy since the last reading from the GPU's counter; without one, interpolates power linearly between
  /// readings.
  void add_energy(const GpuReading& now, Clock::time_point time) {
    if (last_ && now.energy && last_->energy) {
      joules_ += std::max(0.0, *now.energy - *last_->energy);
    } else if (last_ && now.power && last_->power) {
      joules_ += 0.5 * (*now.power + *last_->power) * std::chrono::duration<double>(time - last_time_).count();
    }
    last_ = now;
    last_time_ = time;
  }

  const GpuLibrary* library_;
  GpuLibrary::Device device_;
  std::size_t index_;
  std::string name_;
  std::optional<GpuReading> last_;
  Clock::time_point last_time_;
  double joules_ = 0.0;
};

namespace {

/// Returns the GPUs that `rank` writes for: all that it sees on its node, unless a lower rank of the node writes for
/// them. If ranks of a node see different GPUs, each set goes to one rank as a whole, so no communication is needed.
std::vector<GpuMeter> meters_of(const GpuLibrary& library, std::span<const RankPlacement> placements,
                                std::size_t rank) {
  std::vector<GpuMeter> meters;
  std::vector<std::string> devices;  // distinct devices of the node
  for (std::size_t other = 0; other < placements.size(); ++other) {
    const RankPlacement& placement = placements[other];
    if (placement.node != placements[rank].node || std::ranges::find(devices, placement.device) != devices.end())
      continue;
    devices.push_back(placement.device);
    GpuLibrary::Device device = library.find(placement.device);
    if (device == nullptr) continue;
    if (meters.empty() && other != rank) return {};
    meters.emplace_back(library, device, devices.size() - 1);
  }
  return meters;
}

std::size_t node_count(std::span<const RankPlacement> placements) {
  std::size_t count = 0;
  for (const RankPlacement& placement : placements) count = std::max(count, placement.node + 1);
  return count;
}

std::unique_ptr<AppendFile> open_record_file(const fs::path& run, const std::string& node) {
  const fs::path directory = run / gpu_records_name;
  std::error_code code;
  fs::create_directory(directory, code);
  if (code) fail(fmt::format("{} cannot be made: {}", directory.string(), code.message()));
  return open_lines(directory / (node + ".jsonl"));
}

/// Returns `text` with `to` instead of the first `from`.
std::string with_replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t found = text.find(from);
  return found == std::string::npos ? text : text.replace(found, from.size(), to);
}

}  // namespace

std::chrono::duration<double> gpu_sample_interval(std::size_t nodes) {
  return std::clamp(usual_interval * (static_cast<double>(nodes) / static_cast<double>(nodes_without_wait)),
                    usual_interval, longest_interval);
}

std::unique_ptr<const GpuLibrary> open_gpu_library(const std::string& device) {
  return device.find(':') == std::string::npos ? open_nvml() : open_rocm_smi();
}

std::string gpu_node_name(std::span<const RankPlacement> placements, std::size_t rank) {
  const RankPlacement& mine = placements[rank];
  const bool shared = std::ranges::any_of(placements, [&](const RankPlacement& placement) {
    return placement.host == mine.host && placement.node != mine.node;
  });
  return shared ? fmt::format("{}-{}", mine.host, mine.node) : mine.host;
}

std::vector<std::string> unwatched_lines(std::span<const std::string> obstacles) {
  std::map<std::string, std::size_t> nodes;
  for (const std::string& all : obstacles) {
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) ++nodes[line];
  }
  std::vector<std::string> lines;
  for (const auto& [line, count] : nodes) lines.push_back(with_replaced(line, "{nodes}", count_of(count, "node")));
  return lines;
}

/// The thread's data, released by the last of its two owners.
struct GpuMonitor::Work {
  Work(std::string name, Settings given) : settings(std::move(given)), node(std::move(name)) {}

  void find_gpus(std::span<const RankPlacement> placements, std::size_t rank);
  void open_gpu_log(std::span<const RankPlacement> placements, bool creates);
  void run();
  void write_sample();
  /// Calls `append`, and logs its error unless the last call failed, too.
  template <class Append>
  void try_to_append(const std::string& what, bool& has_failed, const Append& append) const;

  Settings settings;
  std::string node;
  std::optional<NodeMeter> node_meter;  ///< on the first rank of the node
  std::unique_ptr<const GpuLibrary> library;
  std::vector<GpuMeter> meters;
  std::unique_ptr<AppendFile> file;
  std::optional<GpuLog> gpu_log;
  bool file_has_failed = false, gpu_log_has_failed = false;
  std::atomic<std::size_t> step = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool to_end = false, ended = false;  ///< guarded by `mutex`
  std::thread thread;
};

void GpuMonitor::Work::find_gpus(std::span<const RankPlacement> placements, std::size_t rank) {
  if (placements[rank].device.empty()) return;
  const std::string& device = placements[rank].device;
  library = settings.open(device);
  meters = meters_of(*library, placements, rank);
  if (meters.empty()) ensure(library->find(device) != nullptr, "the driver does not show them to this process");
}

void GpuMonitor::Work::open_gpu_log(std::span<const RankPlacement> placements, bool creates) {
  if (settings.gpu_log.empty() || meters.empty()) return;
  const fs::path file_of_node = node_count(placements) > 1 ? gpu_log_of_node(settings.gpu_log, node) : settings.gpu_log;
  try {
    gpu_log.emplace(file_of_node, creates);
  } catch (const std::exception& error) {  // of all nodes, with the name that was given
    fail(with_replaced(error.what(), file_of_node.string(), settings.gpu_log.string()));
  }
}

void GpuMonitor::Work::run() {
  std::unique_lock lock(mutex);
  for (bool last = false; !last;) {
    lock.unlock();
    write_sample();
    lock.lock();
    last = to_end;  // set before or while this sample was taken
    changed.wait_for(lock, settings.interval, [this] { return to_end; });
  }
  file.reset();
  ended = true;
  changed.notify_all();
}

void GpuMonitor::Work::write_sample() {
  GpuSample sample{.time = seconds_since_1970(), .step = step, .gpus = {}};
  std::erase_if(meters, [&](GpuMeter& meter) {
    try {
      sample.gpus.push_back(meter.read());
      return false;
    } catch (const std::exception& error) {
      settings.log(fmt::format("{}: GPU {} is no longer recorded: {}", node, meter.index(), error.what()));
      return true;
    }
  });
  if (node_meter) sample.node = node_meter->read(Clock::now().time_since_epoch());
  if (sample.gpus.empty() && !sample.node) return;
  try_to_append("the node", file_has_failed, [&] { file->append(to_line(sample)); });
  if (gpu_log) try_to_append(setting("gpu-log"), gpu_log_has_failed, [&] { gpu_log->append(sample); });
}

template <class Append>
void GpuMonitor::Work::try_to_append(const std::string& what, bool& has_failed, const Append& append) const {
  try {
    append();
    has_failed = false;
  } catch (const std::exception& error) {
    if (!std::exchange(has_failed, true))
      settings.log(fmt::format("{}: {} is not recorded: {}", node, what, error.what()));
  }
}

GpuMonitor::GpuMonitor(const fs::path& run, std::span<const RankPlacement> placements, std::size_t rank,
                       Settings settings) {
  const bool is_first = placements[rank].rank_of_node == 0;
  const auto work = std::make_shared<Work>(gpu_node_name(placements, rank), std::move(settings));
  std::vector<std::string> obstacles;
  const auto attempt = [&](const std::string& what, const auto& action) {
    try {
      action();
    } catch (const std::exception& error) {
      obstacles.push_back(fmt::format("{}: {}", what, error.what()));
    }
  };
  if (is_first) {
    const bool may_ask = node_count(placements) <= nodes_without_wait;
    work->node_meter.emplace(work->settings.system, may_ask ? work->settings.scontrol : RunProgram());
    obstacles = work->node_meter->obstacles();
  }
  attempt("GPUs of {nodes} are not recorded", [&] { work->find_gpus(placements, rank); });
  attempt(setting("gpu-log") + " of {nodes} is not written", [&] { work->open_gpu_log(placements, is_first); });
  if (is_first || !work->meters.empty()) {
    attempt("{nodes} cannot be recorded", [&] {
      work->file = open_record_file(run, work->node);
      work->thread = start_thread([work] { work->run(); });
      work_ = work;
    });
  }
  if (is_first) obstacles_ = fmt::format("{}", fmt::join(obstacles, "\n"));
}

GpuMonitor::~GpuMonitor() {
  if (writes()) finish();
}

void GpuMonitor::start(const RunStart& run) { note_step(run.first_step); }
void GpuMonitor::step(const StepReport& report) { note_step(report.step); }
void GpuMonitor::note_step(std::size_t step) {
  if (writes()) work_->step = step;
}

void GpuMonitor::finish() {
  const std::shared_ptr<Work> work = std::exchange(work_, nullptr);
  if (work == nullptr) return;
  std::unique_lock lock(work->mutex);
  work->to_end = true;
  work->changed.notify_all();
  const bool ended = work->changed.wait_for(lock, work->settings.longest_wait, [&] { return work->ended; });
  lock.unlock();
  if (ended) {
    work->thread.join();
  } else {
    work->thread.detach();
    work->settings.log(
        fmt::format("{}: the GPUs' driver or the disk does not respond; the last sample is left out", work->node));
  }
}

}  // namespace mylos::train
