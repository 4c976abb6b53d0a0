#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace mylos {

/// A file that grows by whole records while other processes read it. A failed append leaves the file at its previous
/// length. If a full disk prevents even the truncation of a partial record, the next append() truncates it first.
/// Errors are std::runtime_error naming the file.
class AppendFile {
 public:
  /// Opens the file, creating it if it does not exist.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);
  /// Flushes the records to disk.
  void sync();
  const std::filesystem::path& path() const { return path_; }

 private:
  bool cut(std::int64_t size) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::optional<std::int64_t> broken_at_;  ///< offset of a partial record, if one remains
};

}  // namespace mylos
