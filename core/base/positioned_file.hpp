#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace mylos {

/// A file that is read and written at places, by several processes at once. Errors are std::runtime_error with the
/// file and what the system says.
class PositionedFile {
 public:
  enum class Use { read, write, create };
  /// `create`: a file that is not there yet.
  PositionedFile(std::filesystem::path path, Use use);
  ~PositionedFile();
  PositionedFile(const PositionedFile&) = delete;
  PositionedFile& operator=(const PositionedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;

  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Asks the system to begin carrying these bytes to the disk; where it cannot, nothing.
  void begin_flush(std::uint64_t offset, std::uint64_t count) const;
  /// Makes the file this long and takes the space for it, where the file system can.
  void reserve(std::uint64_t size) const;
  void resize(std::uint64_t size) const;
  /// Returns when what was written is on the disk; closes the file.
  void sync_and_close();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace mylos
