#pragma once

#include "core/base/files/append_file.hpp"
#include "train/monitor/gpu_record.hpp"

#include <memory>
#include <string_view>

namespace mylos::train {

/// Opens a file of lines to append to. Terminates an incomplete last line of a killed run, so that it does not spoil
/// the next line. Errors: those of AppendFile.
std::unique_ptr<AppendFile> open_lines(const std::filesystem::path& path);

/// Returns the file of a node if there are several: "gpus-n1.csv" for "gpus.csv".
std::filesystem::path gpu_log_of_node(const std::filesystem::path& file, const std::string& node);

/// A log of GPUs in the columns that scripts read from `nvidia-smi --format=csv --query-gpu=
/// timestamp,name,utilization.gpu,utilization.memory,memory.total,memory.used`, one row for each GPU and sample.
class GpuLog {
 public:
  static constexpr std::string_view header =
      "timestamp, name, utilization.gpu [%], utilization.memory [%], memory.total [MiB], memory.used [MiB]\n";

  /// One process of a node `creates` the file with its header, or continues one that begins with it. Others write once
  /// it is there. Errors: std::runtime_error with a one-line message that names the file.
  GpuLog(std::filesystem::path file, bool creates);
  /// Adds the rows of a sample, in local time. Errors: those of AppendFile.
  void append(const GpuSample& sample);

 private:
  std::filesystem::path path_;
  std::unique_ptr<AppendFile> file_;
};

}  // namespace mylos::train
