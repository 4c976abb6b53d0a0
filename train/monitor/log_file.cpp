#include "train/monitor/log_file.hpp"

#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace mylos::train {
namespace {

constexpr int rest = 9;  // pause, in multiples of the last attempt's time: a slow file system takes a tenth of the time

}  // namespace

LogFile::LogFile(std::filesystem::path path, Notice notice, std::size_t most)
    : file_(std::move(path)), notice_(std::move(notice)), most_(most) {}

LogFile::~LogFile() { write_kept(); }

void LogFile::append(std::string_view record) {
  keep(record);
  if (Clock::now() >= retry_at_) write_kept();
}

void LogFile::sync() {
  try {
    file_.sync();
  } catch (const std::exception& error) {
    if (!std::exchange(reported_sync_, true))
      say(fmt::format("{}; a crash of the machine may lose records", error.what()));
  }
}

std::string LogFile::missing() {
  write_kept();
  const std::size_t count = kept_.size() + dropped_;
  if (count == 0) return {};
  return fmt::format("{}; {} missing there",
                     error_.empty() ? "could not always write " + file_.path().string() : error_,
                     count_of(count, "record") + (count == 1 ? " is" : " are"));
}

void LogFile::keep(std::string_view record) {
  if (kept_bytes_ + record.size() > most_) {
    ++dropped_;
    return;
  }
  kept_.emplace_back(record);
  kept_bytes_ += record.size();
}

void LogFile::write_kept() {
  if (kept_.empty()) return;
  const Clock::time_point begin = Clock::now();
  error_.clear();
  try {
    while (!kept_.empty()) {
      file_.append(kept_.front());
      kept_bytes_ -= kept_.front().size();
      kept_.pop_front();
    }
  } catch (const std::exception& error) {
    error_ = error.what();
    retry_at_ = Clock::now() + rest * (Clock::now() - begin);
    if (!std::exchange(reported_failure_, true)) {
      say(error_ + "; the run continues, keeps its records in memory and tries again");
    }
    return;
  }
  if (reported_failure_ && !std::exchange(reported_success_, true)) {
    say(fmt::format("{} is written again, with the records that were kept", file_.path().string()));
  }
}

void LogFile::say(const std::string& line) const {
  if (notice_) notice_(line);
}

}  // namespace mylos::train
