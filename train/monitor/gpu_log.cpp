#include "train/monitor/gpu_log.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <utility>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;

/// Formats "2025/01/31 12:00:00.123".
std::string log_time(double seconds_since_1970) {
  const auto milliseconds = static_cast<long long>(seconds_since_1970 * 1e3);
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y/%m/%d %H:%M:%S", &local);
  return fmt::format("{}.{:03}", text.data(), milliseconds % 1000);
}

/// Formats a whole number with its unit, as nvidia-smi does.
std::string cell_text(const std::optional<double>& value, double scale, const char* unit) {
  return value ? fmt::format("{:.0f} {}", std::floor(*value / scale), unit) : "[N/A]";
}

}  // namespace

std::unique_ptr<AppendFile> open_lines(const fs::path& path) {
  std::ifstream before(path, std::ios::ate | std::ios::binary);
  const bool whole = !before || before.tellg() <= 0 || (before.seekg(-1, std::ios::end), before.get() == '\n');
  auto file = std::make_unique<AppendFile>(path);
  if (!whole) file->append("\n");
  return file;
}

fs::path gpu_log_of_node(const fs::path& file, const std::string& node) {
  fs::path name = file.stem();
  name += fmt::format("-{}{}", node, file.extension().string());
  return file.parent_path() / name;
}

GpuLog::GpuLog(fs::path file, bool creates) : path_(std::move(file)) {
  if (!creates) return;
  std::error_code none;
  if (fs::exists(path_, none) && fs::file_size(path_, none) > 0) {
    ensure(beginning_of(path_, header.size()) == header,
           fmt::format("{} exists and does not begin with \"timestamp, name, ...\"", path_.string()));
  } else {
    write_text(path_, header);  // other processes see the whole line
  }
  file_ = open_lines(path_);
}

void GpuLog::append(const GpuSample& sample) {
  std::error_code none;
  if (file_ == nullptr && fs::exists(path_, none)) file_ = open_lines(path_);
  if (file_ == nullptr) return;
  constexpr double mebibyte = 1 << 20;
  std::string rows;
  for (const GpuReading& gpu : sample.gpus) {
    rows += fmt::format("{}, {}, {}, {}, {}, {}\n", log_time(sample.time), gpu.name,
                        cell_text(gpu.utilization, 1.0, "%"), cell_text(gpu.memory_utilization, 1.0, "%"),
                        cell_text(gpu.memory_total, mebibyte, "MiB"), cell_text(gpu.memory, mebibyte, "MiB"));
  }
  if (!rows.empty()) file_->append(rows);
}

}  // namespace mylos::train
