#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace mylos {

/// A file that several processes read and write at given offsets concurrently. Errors are std::runtime_error with the
/// file and the system's message.
class PositionedFile {
 public:
  enum class Use { read, write, create };
  /// `create` requires that the file does not exist yet.
  PositionedFile(std::filesystem::path path, Use use);
  ~PositionedFile();
  PositionedFile(const PositionedFile&) = delete;
  PositionedFile& operator=(const PositionedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;

  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Asks the system to start writing these bytes to disk; a no-op if it cannot.
  void begin_flush(std::uint64_t offset, std::uint64_t count) const;
  /// Extends the file to `size` bytes and reserves disk space, if the file system can.
  void reserve(std::uint64_t size) const;
  void resize(std::uint64_t size) const;
  /// Flushes everything written to disk, and closes the file.
  void sync_and_close();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace mylos
