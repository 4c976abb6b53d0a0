#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/files/files.hpp"
#include "core/base/value_bytes.hpp"

namespace mylos {

/// Copies of the files and directories that one process has read, for others.
struct FileCopies {
  std::map<std::string, std::string> texts;                        ///< bytes of files, by path
  std::map<std::string, std::vector<DirectoryEntry>> directories;  ///< entries of directories, by path
  std::map<std::string, std::string> values;                       ///< bytes of the values of read_once, by path
};
inline auto members(FileCopies& copies) { return std::tie(copies.texts, copies.directories, copies.values); }

/// Reads files that many processes need: one of them keeps copies of what it has read, and the others use those instead
/// of opening the files. It is an argument of each function that reads such a file. A small value that refers to the
/// copies; one thread at a time may keep copies.
class FileReader {
 public:
  /// Reads every file, as a process does that is alone.
  FileReader() = default;
  /// Adds what it reads to `kept`, except for texts of more than `most_bytes`.
  FileReader(FileCopies& kept, std::size_t most_bytes) : kept_(&kept), most_bytes_(most_bytes) {}
  /// Returns what is in `used`, and reads files and directories that have no copy.
  explicit FileReader(const FileCopies& used) : used_(&used) {}
  explicit FileReader(FileCopies&&) = delete;  // would refer to copies that are gone

  /// Do the same as the functions of these names in files.hpp.
  std::string read_text(const std::filesystem::path& path) const;
  std::vector<DirectoryEntry> list_directory(const std::filesystem::path& directory) const;

  /// Returns whether read_once has a copy of the values of the file at `path`.
  bool has_values(const std::filesystem::path& path) const { return find_values(path) != nullptr; }
  /// Calls `read`, which sets `values` from the file at `path`, or sets them from their copy. For large files of which
  /// all processes need a part, such as an index. A copy takes as much memory as the values. Errors: those of `read`.
  template <class Read, class... Values>
  void read_once(const std::filesystem::path& path, const Read& read, Values&... values) const {
    if (const std::string* const copy = find_values(path)) return set_from(*copy, values...);
    read();
    if (kept_ == nullptr) return;
    ByteWriter writer;
    (writer.add(values), ...);
    kept_->values[path.string()] = writer.take();
  }

 private:
  const std::string* find_values(const std::filesystem::path& path) const;
  template <class... Values>
  static void set_from(const std::string& copy, Values&... values) {
    ByteReader reader(copy);
    (reader.read(values), ...);
    require(reader.at_end(), "bytes are left behind the values of a file");
  }

  FileCopies* kept_ = nullptr;
  std::size_t most_bytes_ = 0;
  const FileCopies* used_ = nullptr;
};

}  // namespace mylos
