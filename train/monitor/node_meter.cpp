#include "train/monitor/node_meter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <system_error>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using Seconds = NodeMeter::Seconds;

constexpr Seconds shortest_interval{0.1};  // processor times are counted in hundredths of a second
constexpr double micro = 1e-6;
constexpr std::size_t samples_a_question = 12;  // Slurm's controller is asked once a minute, or less often

/// The first 4 KiB of a file of the system, or why it cannot be read.
struct SystemText {
  std::string text, error;
};

SystemText read_system_text(const fs::path& path) {
  std::array<char, 4096> buffer;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : ::read(file, buffer.data(), buffer.size());
  const int code = errno;
  if (file >= 0) ::close(file);
  if (size < 0) return {"", std::strerror(code)};
  return {std::string(buffer.data(), static_cast<std::size_t>(size)), ""};
}

std::optional<double> first_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() ? std::optional(value) : std::nullopt;
}

std::optional<double> number_in_file(const fs::path& path) { return first_number(read_system_text(path).text); }

/// Returns why a file that should have a number has none.
std::string why_not(const fs::path& path) {
  const std::string error = read_system_text(path).error;
  return error.empty() ? "no such number" : error;
}

std::string first_line(const fs::path& path) {
  const std::string text = read_system_text(path).text;
  return text.substr(0, text.find('\n'));
}

/// Returns the sorted paths in `directory` whose names begin with `prefix`; empty if it cannot be read.
std::vector<fs::path> entries_of(const fs::path& directory, std::string_view prefix) {
  std::vector<fs::path> paths;
  std::error_code code;
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code)) {
    if (entry->path().filename().string().starts_with(prefix)) paths.push_back(entry->path());
  }
  std::ranges::sort(paths);
  return paths;
}

/// Returns the bytes of a line "MemTotal:  1024 kB" of /proc/meminfo.
std::optional<double> meminfo_bytes(const std::string& text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string::npos) return std::nullopt;
  const auto kibibytes = first_number(text.substr(found + key.size()));
  return kibibytes ? std::optional(1024.0 * *kibibytes) : std::nullopt;
}

/// A counter of RAPL, in microjoules. It starts again after its range.
struct EnergyCounter {
  fs::path file;
  double range = 0.0, last = 0.0;
};

/// The power of the processors and, where it is counted apart, of the memory: the zones "package-0" and "dram". Zones
/// of a package's parts are left out, and "psys", which contains packages.
class RaplMeter {
 public:
  /// `obstacle` is why there is none.
  RaplMeter(const fs::path& directory, std::string& obstacle) {
    for (const fs::path& zone : entries_of(directory, "intel-rapl:")) {
      const std::string name = first_line(zone / "name");
      if (!name.starts_with("package") && name != "dram") continue;
      const SystemText energy = read_system_text(zone / "energy_uj");
      if (!energy.error.empty()) obstacle = fmt::format("{}: {}", (zone / "energy_uj").string(), energy.error);
      counters_.push_back({zone / "energy_uj", number_in_file(zone / "max_energy_range_uj").value_or(0.0)});
    }
    if (counters_.empty()) obstacle = fmt::format("{}: no RAPL", directory.string());
  }

  std::optional<double> watts(Seconds now) {
    const bool is_due = !has_last_ || now - time_ >= shortest_interval;
    if (!is_due) return std::nullopt;
    double sum = 0.0;
    bool is_whole = true;
    for (EnergyCounter& counter : counters_) {
      const auto energy = number_in_file(counter.file);
      is_whole = is_whole && energy;
      if (!energy) continue;
      sum += *energy - counter.last + (*energy < counter.last ? counter.range : 0.0);
      counter.last = *energy;
    }
    const double seconds = Seconds(now - std::exchange(time_, now)).count();
    const bool had_last = std::exchange(has_last_, is_whole);
    return is_whole && had_last ? std::optional(micro * sum / seconds) : std::nullopt;
  }

 private:
  std::vector<EnergyCounter> counters_;
  Seconds time_{};
  bool has_last_ = false;
};

/// Returns the files with the average power of the node in microwatts. Chips other than ACPI's power meters measure
/// parts of a node: a GPU, a power supply. On Grace there is a meter for each part, and those of modules contain the
/// others.
std::vector<fs::path> power_meters(const fs::path& hwmon) {
  std::vector<std::pair<fs::path, std::string>> meters;  // with what each measures
  for (const fs::path& chip : entries_of(hwmon, "hwmon")) {
    for (const fs::path& place : {chip, chip / "device"}) {  // as new and old kernels have it
      std::error_code none;
      if (first_line(place / "name") != "power_meter" || !fs::exists(place / "power1_average", none)) continue;
      meters.emplace_back(place / "power1_average", first_line(place / "power1_oem_info"));
      break;
    }
  }
  for (const char* outer : {"Module Power", "Grace Power"}) {
    const auto is_outer = [&](const auto& meter) { return meter.second.starts_with(outer); };
    if (std::ranges::any_of(meters, is_outer)) std::erase_if(meters, std::not_fn(is_outer));
  }
  std::vector<fs::path> files;
  for (auto& [file, measured] : meters) files.push_back(std::move(file));
  return files;
}

std::optional<double> watts_of(const std::vector<fs::path>& meters) {
  double sum = 0.0;
  for (const fs::path& meter : meters) {
    const auto microwatts = number_in_file(meter);
    if (!microwatts) return std::nullopt;
    sum += micro * *microwatts;
  }
  return sum;
}

/// Asks Slurm's controller, and repeats its answer until the next question.
class SlurmMeter {
 public:
  SlurmMeter(std::string node, RunProgram scontrol) : node_(std::move(node)), scontrol_(std::move(scontrol)) {}

  std::optional<double> watts(Seconds) {
    if (samples_++ % samples_a_question == 0) {
      // Ends before the run stops to wait for the last sample.
      const auto output = scontrol_({"timeout", "4", "scontrol", "show", "node", node_});
      answer_ = output ? scontrol_watts(*output) : std::nullopt;
    }
    return answer_;
  }

 private:
  std::string node_;
  RunProgram scontrol_;
  std::size_t samples_ = 0;
  std::optional<double> answer_;
};

}  // namespace

std::optional<double> scontrol_watts(const std::string& output) {
  constexpr std::string_view key = "CurrentWatts=";
  const std::size_t found = output.find(key);
  const auto watts = found == std::string::npos ? std::nullopt : first_number(output.substr(found + key.size()));
  return watts && *watts > 0.0 ? watts : std::nullopt;
}

NodeMeter::NodeMeter(fs::path root, const RunProgram& scontrol) : root_(std::move(root)) {
  NodeReading reading;
  read_cpu(Seconds(0.0));
  read_memory(reading);
  const auto note = [this](const char* what, const char* file) {
    const fs::path path = root_ / file;
    obstacles_.push_back(fmt::format("{} of {{nodes}} is not recorded: {}: {}", what, path.string(), why_not(path)));
  };
  if (!std::exchange(last_, std::nullopt)) note("CPU utilization", "proc/stat");
  if (!reading.memory) note("memory", "proc/meminfo");
  find_power(scontrol);
}

NodeReading NodeMeter::read(Seconds now) {
  NodeReading reading{.cpu = read_cpu(now)};
  read_memory(reading);
  reading.power = power_ ? power_(now) : std::nullopt;
  if (reading.power && *reading.power <= 0.0) reading.power.reset();
  if (reading.power) reading.power_source = power_source_;
  return reading;
}

/// The first line of /proc/stat is "cpu user nice system idle iowait irq softirq steal ...", over all processors.
std::optional<double> NodeMeter::read_cpu(Seconds now) {
  if (last_ && now - last_->time < shortest_interval) return std::nullopt;
  std::istringstream words(read_system_text(root_ / "proc/stat").text);
  constexpr std::size_t idle = 3, waits = 4, fields = 8;
  std::array<double, fields> times{};
  std::string label;
  std::size_t read = 0;
  for (words >> label; read < fields && words >> times[read];) ++read;
  const auto earlier = std::exchange(last_, std::nullopt);
  if (label != "cpu" || read <= idle) return std::nullopt;
  last_ = ProcessorTimes{.time = now};
  for (std::size_t i = 0; i < fields; ++i) {
    last_->total += times[i];
    if (i != idle && i != waits) last_->busy += times[i];
  }
  if (!earlier || last_->total <= earlier->total) return std::nullopt;
  return std::clamp(100.0 * (last_->busy - earlier->busy) / (last_->total - earlier->total), 0.0, 100.0);
}

void NodeMeter::read_memory(NodeReading& reading) const {
  const std::string text = read_system_text(root_ / "proc/meminfo").text;
  reading.memory_total = meminfo_bytes(text, "MemTotal:");
  const auto available = meminfo_bytes(text, "MemAvailable:");
  if (reading.memory_total && available) reading.memory = *reading.memory_total - *available;
}

void NodeMeter::find_power(const RunProgram& scontrol) {
  std::vector<std::string> reasons;
  const auto take = [&](const char* source, PowerMeter meter) {
    power_source_ = source;
    power_ = std::move(meter);
  };
  const fs::path cray = root_ / "sys/cray/pm_counters/power";
  if (number_in_file(cray).value_or(0.0) > 0.0) return take("Cray", [cray](Seconds) { return number_in_file(cray); });
  reasons.push_back(fmt::format("{}: {}", cray.string(), why_not(cray)));

  std::string rapl_obstacle;
  const auto rapl = std::make_shared<RaplMeter>(root_ / "sys/class/powercap", rapl_obstacle);
  if (rapl_obstacle.empty()) return take("RAPL", [rapl](Seconds now) { return rapl->watts(now); });
  reasons.push_back(rapl_obstacle);

  const fs::path hwmon = root_ / "sys/class/hwmon";
  const std::vector<fs::path> meters = power_meters(hwmon);
  if (watts_of(meters).value_or(0.0) > 0.0) return take("hwmon", [meters](Seconds) { return watts_of(meters); });
  reasons.push_back(meters.empty() ? fmt::format("{}: no power_meter", hwmon.string())
                                   : fmt::format("{}: {}", meters.front().string(), why_not(meters.front())));

  const char* const node = std::getenv("SLURMD_NODENAME");
  if (node != nullptr && scontrol) {
    const auto slurm = std::make_shared<SlurmMeter>(node, scontrol);
    if (slurm->watts({})) return take("Slurm", [slurm](Seconds now) { return slurm->watts(now); });
    reasons.emplace_back("Slurm knows no CurrentWatts");
  }
  obstacles_.push_back(fmt::format("power of {{nodes}} is not recorded: {}", fmt::join(reasons, "; ")));
}

}  // namespace mylos::train
