#pragma once

#include "core/base/append_file.hpp"
#include "core/base/notice.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

namespace mylos::train {

/// A log that does not end the run whose log it is: records that cannot be written, as on a full disk, are kept in
/// memory and written later, in order and each once. The notice gets a line the first time that writing fails and the
/// first time that it works again.
class LogFile {
 public:
  /// Bytes of records that are kept at most: about 200,000 steps. Later ones are dropped and counted.
  static constexpr std::size_t most_kept = std::size_t{64} << 20;

  /// Opens or makes the file. Errors: AppendFile's.
  explicit LogFile(std::filesystem::path path, Notice notice = {}, std::size_t most = most_kept);
  /// Tries a last time to write what is kept.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void append(std::string_view record);
  /// Tries to write what is kept. Returns an error that names the file and how much is missing in it; empty where
  /// everything is written.
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
  std::string error_;           ///< of the last attempt; empty where it succeeded
  Clock::time_point retry_at_;  ///< no attempt before
  bool told_failure_ = false, told_success_ = false;
};

}  // namespace mylos::train
