#include "train/monitor/gpu_monitor.hpp"

#include "core/base/append_file.hpp"
#include "core/base/error.hpp"
#include "core/base/process.hpp"
#include "core/base/quantities.hpp"
#include "core/base/threads.hpp"
#include "train/monitor/gpu_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using parallel::RankPlacement;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::duration<double> usual_interval(5.0), longest_interval(60.0);
constexpr double nodes_without_wait = 16.0;

/// A GPU of this node, and its energy since the start of the run.
class GpuMeter {
 public:
  GpuMeter(const Nvml& nvml, Nvml::Device device, std::size_t index)
      : nvml_(&nvml), device_(device), index_(index), name_(nvml.name(device)) {}

  std::size_t index() const { return index_; }

  /// Errors: those of Nvml::state.
  GpuReading read() {
    const GpuState now = nvml_->state(device_);
    add_energy(now, Clock::now());
    const bool counts = now.energy || now.power || joules_ > 0.0;
    return {.index = index_,
            .name = name_,
            .utilization = now.utilization,
            .memory = now.memory,
            .memory_total = now.memory_total,
            .power = now.power,
            .energy = counts ? std::optional(joules_) : std::nullopt};
  }

 private:
  /// Adds the energy since the last reading from the GPU's counter; without one, interpolates power linearly between
  /// readings.
  void add_energy(const GpuState& now, Clock::time_point time) {
    if (last_ && now.energy && last_->energy) {
      joules_ += std::max(0.0, *now.energy - *last_->energy);
    } else if (last_ && now.power && last_->power) {
      joules_ += 0.5 * (*now.power + *last_->power) * std::chrono::duration<double>(time - last_time_).count();
    }
    last_ = now;
    last_time_ = time;
  }

  const Nvml* nvml_;
  Nvml::Device device_;
  std::size_t index_;
  std::string name_;
  std::optional<GpuState> last_;
  Clock::time_point last_time_;
  double joules_ = 0.0;
};

/// Returns the GPUs that `rank` writes for: all that it sees on its node, unless a lower rank of the node writes for
/// them. If ranks of a node see different GPUs, each set goes to one rank as a whole, so no communication is needed.
std::vector<GpuMeter> meters_of(const Nvml& nvml, std::span<const RankPlacement> placements, std::size_t rank) {
  std::vector<GpuMeter> meters;
  std::vector<std::string> devices;  // distinct devices of the node
  for (std::size_t other = 0; other < placements.size(); ++other) {
    const RankPlacement& placement = placements[other];
    if (placement.node != placements[rank].node || std::ranges::find(devices, placement.device) != devices.end())
      continue;
    devices.push_back(placement.device);
    Nvml::Device device = nvml.find(placement.device);
    if (device == nullptr) continue;
    if (meters.empty() && other != rank) return {};
    meters.emplace_back(nvml, device, devices.size() - 1);
  }
  return meters;
}

/// Opens the file. Terminates an incomplete last line of a killed run, so that it does not spoil the next line.
std::unique_ptr<AppendFile> open_record_file(const fs::path& run, const std::string& node) {
  const fs::path directory = run / gpu_records_name, path = directory / (node + ".jsonl");
  std::error_code code;
  fs::create_directory(directory, code);
  if (code) fail(fmt::format("{} cannot be made: {}", directory.string(), code.message()));
  std::ifstream before(path, std::ios::ate | std::ios::binary);
  const bool whole = !before || before.tellg() <= 0 || (before.seekg(-1, std::ios::end), before.get() == '\n');
  auto file = std::make_unique<AppendFile>(path);
  if (!whole) file->append("\n");
  return file;
}

}  // namespace

std::chrono::duration<double> gpu_sample_interval(std::size_t nodes) {
  return std::clamp(usual_interval * (static_cast<double>(nodes) / nodes_without_wait), usual_interval,
                    longest_interval);
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
  for (const std::string& obstacle : obstacles) {
    if (!obstacle.empty()) ++nodes[obstacle];
  }
  std::vector<std::string> lines;
  for (const auto& [obstacle, count] : nodes) {
    lines.push_back(fmt::format("GPUs of {} are not recorded: {}", count_of(count, "node"), obstacle));
  }
  return lines;
}

/// The thread's data, released by the last of its two owners.
struct GpuMonitor::Work {
  Work(const fs::path& run, std::span<const RankPlacement> placements, std::size_t rank, Settings given)
      : settings(std::move(given)),
        node(gpu_node_name(placements, rank)),
        nvml(settings.library),
        meters(meters_of(nvml, placements, rank)) {
    if (!meters.empty()) file = open_record_file(run, node);
  }

  void run();
  void write_sample();

  Settings settings;
  std::string node;
  Nvml nvml;
  std::vector<GpuMeter> meters;
  std::unique_ptr<AppendFile> file;
  bool told_of_file = false;
  std::atomic<std::size_t> step = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool to_end = false, ended = false;  ///< guarded by `mutex`
  std::thread thread;
};

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
  if (sample.gpus.empty()) return;
  try {
    file->append(to_line(sample));
    told_of_file = false;
  } catch (const std::exception& error) {
    if (!std::exchange(told_of_file, true))
      settings.log(fmt::format("{}: GPUs are not recorded: {}", node, error.what()));
  }
}

GpuMonitor::GpuMonitor(const fs::path& run, std::span<const RankPlacement> placements, std::size_t rank,
                       Settings settings) {
  if (placements[rank].device.empty()) return;
  try {
    auto work = std::make_shared<Work>(run, placements, rank, std::move(settings));
    if (work->meters.empty()) {
      if (work->nvml.find(placements[rank].device) == nullptr) obstacle_ = "NVML does not show them to this process";
    } else {
      work->thread = start_thread([work] { work->run(); });
      work_ = std::move(work);
    }
  } catch (const std::exception& error) {
    obstacle_ = error.what();
  }
  if (placements[rank].rank_of_node > 0) obstacle_.clear();
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
