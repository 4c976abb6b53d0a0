#pragma once

#include <filesystem>
#include <string>

namespace mylos {

/// Locks a directory for one process, with flock on the file .lock in it. The kernel releases the lock when the process
/// ends, however it ends; the file remains. If another process holds the lock, waits up to 2 s. A lock can be lost
/// while it is held: the directory may be removed, or a file server may give the lock to another process.
class DirectoryLock {
 public:
  static constexpr const char* file_name = ".lock";

  /// Errors: std::runtime_error naming the directory and the lock's holder, or saying why the file cannot be written or
  /// locked.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Writes to the file that this process uses the directory, for the error message and for loss() of others.
  void sign();
  /// Returns why the directory belongs to this process no longer: the file is not the one that it signed. Empty if it
  /// is, or if it cannot be read now.
  std::string loss() const;

  /// The system's message if the file system does not support locks, so that the directory is not locked; else empty.
  const std::string& obstacle() const { return obstacle_; }

 private:
  std::filesystem::path file_;
  std::string obstacle_;
  std::string signature_;
  int descriptor_ = -1;
};

}  // namespace mylos
