#include "train/monitor/gpu_record.hpp"

#include "core/base/files/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view record_suffix = ".jsonl";

std::optional<double> told_number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<std::size_t> told_count(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? std::optional(found->get<std::size_t>()) : std::nullopt;
}

std::string told_text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Reads the quantities and the memory in total.
template <class Reading>
void parse_values(const json& object, Reading& reading) {
  for (const auto& quantity : quantities<Reading>) reading.*quantity.field = told_number(object, quantity.name);
  reading.memory_total = told_number(object, "memory_total");
}

template <class Reading>
void put_values(const Reading& reading, nlohmann::ordered_json& object) {
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) object[name] = *value;
  };
  for (const auto& quantity : quantities<Reading>) put(quantity.name, reading.*quantity.field);
  put("memory_total", reading.memory_total);
}

std::optional<GpuReading> parse_reading(const json& gpu) {
  const std::optional<std::size_t> index = gpu.is_object() ? told_count(gpu, "index") : std::nullopt;
  if (!index) return std::nullopt;
  GpuReading reading{.index = *index, .name = told_text(gpu, "name")};
  parse_values(gpu, reading);
  reading.energy = told_number(gpu, "energy");
  return reading;
}

std::optional<GpuSample> parse_sample(const std::string& line) {
  const json row = try_parse_json(line);
  if (!row.is_object()) return std::nullopt;
  const std::optional<double> time = told_number(row, "time");
  const auto gpus = row.find("gpus"), node = row.find("node");
  if (!time || gpus == row.end() || !gpus->is_array()) return std::nullopt;
  GpuSample sample{.time = *time, .step = told_count(row, "step").value_or(0), .gpus = {}};
  for (const json& gpu : *gpus) {
    if (auto reading = parse_reading(gpu)) sample.gpus.push_back(std::move(*reading));
  }
  if (node != row.end() && node->is_object()) {
    parse_values(*node, sample.node.emplace());
    sample.node->power_source = told_text(*node, "power_source");
  }
  return sample;
}

/// Returns the record files of all nodes, sorted by name.
std::vector<fs::path> record_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code unreadable;
  for (fs::directory_iterator entry(directory, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    if (entry->path().extension() == record_suffix) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string to_line(const GpuSample& sample) {
  nlohmann::ordered_json row = {{"time", sample.time}, {"step", sample.step}};
  if (sample.node) {
    nlohmann::ordered_json node = nlohmann::ordered_json::object();
    put_values(*sample.node, node);
    if (sample.node->power) node["power_source"] = sample.node->power_source;
    row["node"] = std::move(node);
  }
  nlohmann::ordered_json gpus = nlohmann::ordered_json::array();
  for (const GpuReading& reading : sample.gpus) {
    nlohmann::ordered_json gpu = {{"index", reading.index}, {"name", reading.name}};
    put_values(reading, gpu);
    if (reading.energy) gpu["energy"] = *reading.energy;
    gpus.push_back(std::move(gpu));
  }
  row["gpus"] = std::move(gpus);
  return row.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

bool GpuRecordReader::begins_anew() {
  std::error_code gone;  // the size is then larger than every offset
  const bool shorter =
      std::ranges::any_of(offsets_, [&](const auto& known) { return fs::file_size(known.first, gone) < known.second; });
  if (shorter) offsets_.clear();
  return shorter;
}

void GpuRecordReader::read(const Take& take) {
  for (const fs::path& file : record_files(directory_)) {
    std::ifstream lines(file);
    std::uintmax_t& offset = offsets_[file];
    lines.seekg(static_cast<std::streamoff>(offset));
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      offset += line.size() + 1;
      if (const auto sample = parse_sample(line)) take(file.stem().string(), *sample);
    }
  }
}

std::vector<GpuSeries> read_gpu_samples(const fs::path& run) {
  std::map<std::pair<std::string, std::size_t>, GpuSeries> gpus;
  GpuRecordReader(run).read([&](const std::string& node, const GpuSample& sample) {
    for (const GpuReading& reading : sample.gpus) {
      GpuSeries& series = gpus[{node, reading.index}];
      series.points.push_back({sample.time, sample.step, reading});
      if (reading.energy) series.energy.add(*reading.energy);
    }
  });
  std::vector<GpuSeries> all;
  for (auto& [location, series] : gpus) {
    series.node = location.first;
    series.index = location.second;
    all.push_back(std::move(series));
  }
  return all;
}

void GpuFollower::update() {
  if (reader_.begins_anew()) {
    gpus_.clear();
    nodes_.clear();
  }
  for (auto& [location, gpu] : gpus_) gpu.recent = {};
  for (auto& [name, node] : nodes_) node.recent = {};
  reader_.read([this](const std::string& node, const GpuSample& sample) {
    if (sample.node) nodes_[node].add(*sample.node, sample.time);
    for (const GpuReading& reading : sample.gpus) {
      Gpu& gpu = gpus_[{node, reading.index}];
      gpu.add(reading, sample.time);
      if (reading.energy) gpu.energy.add(*reading.energy);
    }
  });
}

std::optional<double> GpuFollower::joules() const {
  double sum = 0.0;
  bool configured = false;
  for (const auto& [location, gpu] : gpus_) {
    sum += gpu.energy.joules();
    configured = configured || gpu.last.energy.has_value();
  }
  return configured ? std::optional(sum) : std::nullopt;
}

}  // namespace mylos::train
