#pragma once

#include "core/base/files/append_file.hpp"
#include "core/base/notice.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

namespace mylos::train {

/// A log whose errors do not end the run: records that cannot be written, as on a full disk, are kept in memory and
/// written later, in order and once each. The notice is called on the first failure and on the first success after it.
class LogFile {
 public:
  /// Most bytes of records kept: about 200,000 steps. Later records are dropped and counted.
  static constexpr std::size_t most_kept = std::size_t{64} << 20;

  /// Opens or creates the file. Errors: those of AppendFile.
  explicit LogFile(std::filesystem::path path, Notice notice = {}, std::size_t most = most_kept);
  /// Tries once more to write the records that were kept.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void append(std::string_view record);
  /// Flushes the records that are written to disk. Calls the notice on the first failure.
  void sync();
  /// Tries to write the records that were kept. Returns an error that names the file and the number of missing records;
  /// empty if everything is written.
  std::string missing();

 private:
  using Clock = std::chrono::steady_clock;

  void write_kept();
  void keep(std::string_view record);
  void say(const std::string& line) const;

  AppendFile file_;
  Notice notice_;
  std::size_t most_;
  std::deque<std::string> kept_;
  std::size_t kept_bytes_ = 0, dropped_ = 0;
  std::string error_;           ///< error of the last attempt; empty if it succeeded
  Clock::time_point retry_at_;  ///< earliest time of the next attempt
  bool reported_failure_ = false, reported_success_ = false, reported_sync_ = false;
};

}  // namespace mylos::train
