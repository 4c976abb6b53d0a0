#pragma once

#include <filesystem>
#include <string>

namespace mylos {

/// Holds a directory for one process, by flock on the file .lock in it. The kernel gives it up when the process ends,
/// however it ends; the file stays. Another's lock is waited for, 2 s.
class DirectoryLock {
 public:
  static constexpr const char* file_name = ".lock";

  /// Errors: std::runtime_error naming the directory and who holds it, or why the file cannot be written or locked.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// The system's message if the file system has no locks, so that the directory is not locked; otherwise empty.
  const std::string& obstacle() const { return obstacle_; }

 private:
  std::string obstacle_;
  int descriptor_ = -1;
};

}  // namespace mylos
