#pragma once

#include <chrono>

/// When a rank works with files: others that wait for it then know that a slow disk is no hung exchange.
namespace mylos::parallel {

/// While it lives, this rank works with files. One within another adds nothing. Of the thread that computes.
class FileWork {
 public:
  FileWork();
  ~FileWork();
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  using Clock = std::chrono::steady_clock;

  /// Whether there is one now. Any thread may ask.
  static bool is_under_way();
  /// How much of the time since `begin` the present one, or the last one where there is none, has taken.
  static std::chrono::duration<double> since(Clock::time_point begin);
};

}  // namespace mylos::parallel
