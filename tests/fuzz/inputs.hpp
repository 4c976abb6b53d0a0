#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// Helpers for the fuzz targets.
namespace mylos::tests {

/// Returns the bytes of an input as text.
std::string_view as_text(const std::uint8_t* bytes, std::size_t size);

/// A file in memory with these bytes, for readers that take a path. Destroyed with the object.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const;

 private:
  int descriptor_;
};

/// A directory for readers that look up files by name. Removed with the object.
class InputDirectory {
 public:
  InputDirectory();
  ~InputDirectory();
  InputDirectory(const InputDirectory&) = delete;
  InputDirectory& operator=(const InputDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes or replaces a file.
  void put(const std::filesystem::path& name, std::string_view bytes) const;
  std::string get(const std::filesystem::path& name) const;

 private:
  std::filesystem::path path_;
};

/// Ends the program, which reports a finding, unless `condition` holds.
void expect(bool condition, const char* what);

}  // namespace mylos::tests
