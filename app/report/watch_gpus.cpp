#include "app/report/watch_gpus.hpp"

#include "core/base/text/quantities.hpp"
#include "train/monitor/node_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace mylos::app {
namespace {

using Gpus = train::GpuFollower::Gpus;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t most_lines = 16;
constexpr double silent_seconds = 180.0;  // three times the longest interval between samples

using train::Unit;

/// Returns the text of a value with its unit; "-" if it is not known.
std::string known(const std::optional<double>& value, Unit unit, const char* unit_text) {
  return value ? fmt::format("{} {}", train::quantity_text(*value, unit), unit_text) : "-";
}

std::string memory_of(const train::GpuReading& reading) {
  if (!reading.memory || !reading.memory_total) return known(reading.memory, Unit::bytes, "GiB");
  return fmt::format("{} of {} GiB", train::quantity_text(*reading.memory, Unit::bytes),
                     train::quantity_text(*reading.memory_total, Unit::bytes));
}

std::string silence_text(double now, double time) {
  const double age = now - time;
  return age > silent_seconds ? fmt::format(", nothing written for {}", duration_text(age)) : "";
}

std::string gpu_line(const Gpus::value_type& entry, double now) {
  const auto& [position, gpu] = entry;
  return watch_line("gpu",
                    fmt::format("{} {}  {:>5}  {:>18}  {:>6}  {}{}", position.first, position.second,
                                known(gpu.last.utilization, Unit::percent, "%"), memory_of(gpu.last),
                                known(gpu.last.power, Unit::watts, "W"), gpu.last.name, silence_text(now, gpu.time)));
}

/// Returns how busy a node's least busy GPU is, or its processors; more than 100 if neither is known.
double least_utilization(const train::NodeRow& row) {
  const train::Statistics& busy = row.gpus > 0 ? row.gpu.front() : row.node.front();
  return busy.empty() ? 101.0 : busy.least();
}

/// One value, or the least, the mean and the most of several.
std::string spread_text(const train::Statistics& values, Unit unit) {
  const auto text = [&](double value) { return train::quantity_text(value, unit); };
  if (values.least() == values.peak()) return text(values.mean());
  return fmt::format("{} / {} / {}", text(values.least()), text(values.mean()), text(values.peak()));
}

std::string node_lines(const train::GpuFollower::Nodes& nodes, const Gpus& gpus, double now) {
  std::vector<train::NodeRow> rows = train::node_rows(nodes, gpus, false);
  if (rows.empty()) return "";
  for (train::NodeRow& row : rows) {
    const auto node = nodes.find(row.name);
    if (node != nodes.end()) row.note = silence_text(now, node->second.time);
  }
  if (rows.size() > most_lines) {
    train::NodeRow all{.name = count_of(rows.size(), "node")};
    for (const train::NodeRow& row : rows) all.add(row);
    std::ranges::stable_sort(rows, {}, least_utilization);
    rows.resize(most_lines);
    rows.insert(rows.begin(), std::move(all));
  }
  std::string text;
  for (const std::string& line : train::node_table(rows, spread_text))
    text += watch_line(text.empty() ? "nodes" : "", line);
  return text;
}

template <class Reading>
void put_values(const Reading& reading, OrderedJson& values) {
  const auto put = [&](const char* name, const std::optional<double>& value) {
    values[name] = value ? OrderedJson(*value) : OrderedJson(nullptr);
  };
  for (const auto& quantity : train::quantities<Reading>) put(quantity.name, reading.*quantity.field);
  put("memory_total", reading.memory_total);
}

}  // namespace

std::string watch_line(std::string_view name, const std::string& text) { return fmt::format("{:<11}{}\n", name, text); }

std::string node_and_gpu_lines(const train::GpuFollower::Nodes& nodes, const Gpus& gpus, double now) {
  std::string text = node_lines(nodes, gpus, now);
  if (gpus.size() > most_lines) return text;
  for (const auto& entry : gpus) text += gpu_line(entry, now);
  return text;
}

OrderedJson nodes_json(const train::GpuFollower::Nodes& nodes) {
  OrderedJson all = OrderedJson::array();
  for (const auto& [name, node] : nodes) {
    OrderedJson values = {{"node", name}, {"time", node.time}};
    put_values(node.last, values);
    values["power_source"] = node.last.power ? OrderedJson(node.last.power_source) : OrderedJson(nullptr);
    all.push_back(std::move(values));
  }
  return all;
}

OrderedJson gpus_json(const Gpus& gpus) {
  OrderedJson all = OrderedJson::array();
  for (const auto& [position, gpu] : gpus) {
    OrderedJson values = {
        {"node", position.first}, {"index", position.second}, {"name", gpu.last.name}, {"time", gpu.time}};
    put_values<train::GpuReading>(gpu.last, values);
    all.push_back(std::move(values));
  }
  return all;
}

}  // namespace mylos::app
