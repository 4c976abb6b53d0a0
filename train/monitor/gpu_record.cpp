#include "train/monitor/gpu_record.hpp"

#include "core/base/json.hpp"

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

std::optional<GpuReading> parse_reading(const json& gpu) {
  const std::optional<std::size_t> index = gpu.is_object() ? told_count(gpu, "index") : std::nullopt;
  if (!index) return std::nullopt;
  const auto name = gpu.find("name");
  return GpuReading{.index = *index,
                    .name = name != gpu.end() && name->is_string() ? name->get<std::string>() : "",
                    .utilization = told_number(gpu, "utilization"),
                    .memory = told_number(gpu, "memory"),
                    .memory_total = told_number(gpu, "memory_total"),
                    .power = told_number(gpu, "power"),
                    .energy = told_number(gpu, "energy")};
}

std::optional<GpuSample> parse_sample(const std::string& line) {
  const json row = try_parse_json(line);
  if (!row.is_object()) return std::nullopt;
  const std::optional<double> time = told_number(row, "time");
  const auto gpus = row.find("gpus");
  if (!time || gpus == row.end() || !gpus->is_array()) return std::nullopt;
  GpuSample sample{.time = *time, .step = told_count(row, "step").value_or(0), .gpus = {}};
  for (const json& gpu : *gpus) {
    if (auto reading = parse_reading(gpu)) sample.gpus.push_back(std::move(*reading));
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
  nlohmann::ordered_json gpus = nlohmann::ordered_json::array();
  for (const GpuReading& reading : sample.gpus) {
    nlohmann::ordered_json gpu = {{"index", reading.index}, {"name", reading.name}};
    const auto put = [&](const char* name, const std::optional<double>& value) {
      if (value) gpu[name] = *value;
    };
    put("utilization", reading.utilization);
    put("memory", reading.memory);
    put("memory_total", reading.memory_total);
    put("power", reading.power);
    put("energy", reading.energy);
    gpus.push_back(std::move(gpu));
  }
  const nlohmann::ordered_json row = {{"time", sample.time}, {"step", sample.step}, {"gpus", std::move(gpus)}};
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

}  // namespace mylos::train
