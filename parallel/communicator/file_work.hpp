#pragma once

#include <chrono>

/// Marks the time in which a rank works with files, so that ranks waiting for it can tell a slow disk from a hung
/// exchange.
namespace mylos::parallel {

/// Marks this rank as working with files during the object's lifetime. Nested objects have no effect. Used by the
/// compute thread only.
class FileWork {
 public:
  FileWork();
  ~FileWork();
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  using Clock = std::chrono::steady_clock;

  /// Returns true while an object exists. May be called from any thread.
  static bool is_under_way();
  /// Returns how much of the time since `begin` was spent in the current object, or in the last one if there is none
  /// now.
  static std::chrono::duration<double> since(Clock::time_point begin);
  /// Returns how much of that time had passed when its thread was last seen to use the processor: reading, tokenising
  /// and writing use it, and waiting for a file system that hangs does not. Called regularly, by one thread only.
  static std::chrono::duration<double> progress_since(Clock::time_point begin);
};

}  // namespace mylos::parallel
