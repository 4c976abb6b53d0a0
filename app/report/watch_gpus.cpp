#include "app/report/watch_gpus.hpp"

#include "core/base/median.hpp"
#include "core/base/quantities.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace mylos::app {
namespace {

using Gpus = train::GpuFollower::Gpus;
using Gpu = train::GpuFollower::Gpu;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t most_lines = 16;
constexpr double silent_seconds = 180.0;  // three times the longest interval between samples
constexpr double gib = 1 << 30;

std::string share_of_time(const train::GpuReading& reading) {
  return reading.utilization ? fmt::format("{:.0f} %", *reading.utilization) : "-";
}

std::string memory_of(const train::GpuReading& reading) {
  if (!reading.memory) return "-";
  const std::string used = fmt::format("{:.2f}", *reading.memory / gib);
  return reading.memory_total ? fmt::format("{} of {:.2f} GiB", used, *reading.memory_total / gib) : used + " GiB";
}

std::string power_of(const train::GpuReading& reading) {
  return reading.power ? fmt::format("{:.0f} W", *reading.power) : "-";
}

std::string gpu_line(const Gpus::value_type& entry, double now) {
  const auto& [position, gpu] = entry;
  const double age = now - gpu.time;
  const std::string silent = age > silent_seconds ? fmt::format(", nothing written for {}", duration_text(age)) : "";
  return watch_line(
      "gpu", fmt::format("{} {}  {:>5}  {:>18}  {:>6}  {}{}", position.first, position.second, share_of_time(gpu.last),
                         memory_of(gpu.last), power_of(gpu.last), gpu.last.name, silent));
}

/// Readings of several GPUs.
struct Spread {
  std::vector<double> utilization, memory, power;  ///< from the GPUs that report them
  std::size_t gpus = 0;

  void add(const train::GpuReading& reading) {
    ++gpus;
    if (reading.utilization) utilization.push_back(*reading.utilization);
    if (reading.memory) memory.push_back(*reading.memory / gib);
    if (reading.power) power.push_back(*reading.power);
  }
  /// Returns the lowest utilization; more than 100 if none is reported.
  double least() const { return utilization.empty() ? 101.0 : std::ranges::min(utilization); }
};

std::string spread_text(const std::vector<double>& values, int digits, const char* unit) {
  if (values.empty()) return "-";
  return fmt::format("{:.{}f} / {:.{}f} / {:.{}f} {}", std::ranges::min(values), digits, median(values), digits,
                     std::ranges::max(values), digits, unit);
}

std::string spread_line(const char* name, const std::string& of, const Spread& spread) {
  return watch_line(
      name, fmt::format("{}: {}, {}, {}, {}", of, count_of(spread.gpus, "GPU"), spread_text(spread.utilization, 0, "%"),
                        spread_text(spread.memory, 2, "GiB"), spread_text(spread.power, 0, "W")));
}

OrderedJson or_null(const std::optional<double>& value) { return value ? OrderedJson(*value) : OrderedJson(nullptr); }

}  // namespace

std::string watch_line(std::string_view name, const std::string& text) { return fmt::format("{:<11}{}\n", name, text); }

std::string gpu_lines(const Gpus& gpus, double now) {
  std::string text;
  if (gpus.size() <= most_lines) {
    for (const auto& entry : gpus) text += gpu_line(entry, now);
    return text;
  }
  std::map<std::string, Spread> of_node;
  Spread all;
  for (const auto& [position, gpu] : gpus) {
    of_node[position.first].add(gpu.last);
    all.add(gpu.last);
  }
  std::vector<std::pair<std::string, Spread>> nodes(of_node.begin(), of_node.end());
  if (nodes.size() > most_lines) {
    text += spread_line("gpus", count_of(nodes.size(), "node"), all);
    std::ranges::stable_sort(nodes, {}, [](const auto& node) { return node.second.least(); });
    nodes.resize(most_lines);
  }
  for (const auto& [node, spread] : nodes) text += spread_line("node", node, spread);
  return text;
}

OrderedJson gpus_json(const Gpus& gpus) {
  OrderedJson all = OrderedJson::array();
  for (const auto& [position, gpu] : gpus) {
    all.push_back({{"node", position.first},
                   {"index", position.second},
                   {"name", gpu.last.name},
                   {"time", gpu.time},
                   {"utilization", or_null(gpu.last.utilization)},
                   {"memory", or_null(gpu.last.memory)},
                   {"memory_total", or_null(gpu.last.memory_total)},
                   {"power", or_null(gpu.last.power)}});
  }
  return all;
}

}  // namespace mylos::app
