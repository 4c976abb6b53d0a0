#include "train/monitor/metrics_reader.hpp"

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace mylos::train {

using nlohmann::json;

double number_of(const json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

namespace {

std::string_view kind_of(const json& row) {
  const auto kind = row.find("kind");
  if (kind != row.end() && kind->is_string()) return kind->get_ref<const std::string&>();
  return row.contains("tokens") ? step_kind : row.contains("checkpoint") ? checkpoint_kind : evaluation_kind;
}

}  // namespace

bool is_step_row(const json& row) { return kind_of(row) == step_kind; }
bool is_checkpoint_row(const json& row) { return kind_of(row) == checkpoint_kind; }
bool is_evaluation_row(const json& row) { return kind_of(row) == evaluation_kind; }

bool is_metrics_row(const json& line) {
  return line.is_object() && line.contains("step") && line["step"].is_number_unsigned();
}

bool MetricsReader::exists() const {
  std::error_code none;
  return std::filesystem::exists(file_, none);
}

bool MetricsReader::begins_anew() {
  struct stat status {};
  const bool is_there = ::stat(file_.c_str(), &status) == 0;
  const auto inode = is_there ? static_cast<std::uintmax_t>(status.st_ino) : 0;
  const bool is_same = inode == inode_ && (!is_there || static_cast<std::uintmax_t>(status.st_size) >= offset_);
  if (is_same) return false;
  inode_ = inode;
  offset_ = 0;
  unreadable_ = 0;
  has_rest_ = false;
  return true;
}

void MetricsReader::read(const Take& take) {
  if (!exists()) return;
  std::ifstream lines(file_, std::ios::binary);
  ensure(lines.is_open(), fmt::format("{}: {}", file_.string(), std::strerror(errno)));
  lines.seekg(static_cast<std::streamoff>(offset_));
  has_rest_ = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_whole = !lines.eof();
    json row = try_parse_json(line);
    const bool is_row = is_metrics_row(row);
    // A parsable object is complete even without its newline, which the next call then finds alone.
    has_rest_ = !is_row && !is_whole;
    if (has_rest_) return;
    offset_ += line.size() + (is_whole ? 1 : 0);
    if (is_row) {
      take(std::move(row));
    } else if (!line.empty()) {
      ++unreadable_;
    }
  }
}

}  // namespace mylos::train
