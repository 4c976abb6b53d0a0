#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace mylos::data {

/// Reads a file from its beginning, and decompresses it if it is gzipped. Errors are std::runtime_error with the file.
class InflatedFile {
 public:
  explicit InflatedFile(std::filesystem::path path);
  ~InflatedFile();
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

  /// Reads exactly `count` bytes. Throws if there are fewer. Memory grows with the bytes present rather than with
  /// `count`, and at most `count` bytes are decompressed.
  std::string read(std::size_t count);
  /// Throws if the file contains more bytes.
  void expect_end();
  const std::filesystem::path& path() const { return path_; }

 private:
  /// Reads up to `count` bytes, fewer only at the end of the file.
  std::size_t read_into(char* target, std::size_t count);

  std::filesystem::path path_;
  void* file_;
  std::uint64_t position_ = 0;  ///< in the decompressed bytes
};

}  // namespace mylos::data
