#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace mylos {

/// A file that grows by whole records while others read it: each reaches the file in one piece, or the file is as long
/// as before. Where a disk does not even take half a record back, the next append() begins with that. Errors are
/// std::runtime_error naming the file.
class AppendFile {
 public:
  /// Opens or makes it.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::optional<std::int64_t> broken_at_;  ///< where half a record begins
};

}  // namespace mylos
