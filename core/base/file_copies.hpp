#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/value_bytes.hpp"

/// Copies of the files and directories that one process has read. Other processes use them instead of opening the
/// files.
namespace mylos {

struct FileCopies {
  std::map<std::string, std::string> texts;                        ///< bytes of files, by path
  std::map<std::string, std::vector<DirectoryEntry>> directories;  ///< entries of directories, by path
  std::map<std::string, std::string> values;                       ///< bytes of the values of read_once, by path
};
inline auto members(FileCopies& copies) { return std::tie(copies.texts, copies.directories, copies.values); }

/// While an object exists, read_text, list_directory and read_once on its thread add their results to `copies`, except
/// for texts of more than `most_bytes`. At most one object of these two classes may exist on a thread.
class KeepCopies {
 public:
  KeepCopies(FileCopies& copies, std::size_t most_bytes);
  ~KeepCopies();
  KeepCopies(const KeepCopies&) = delete;
  KeepCopies& operator=(const KeepCopies&) = delete;
};

/// While an object exists, read_text, list_directory and read_once on its thread return the results that are in
/// `copies`. They read files and directories that have no copy.
class UseCopies {
 public:
  explicit UseCopies(const FileCopies& copies);
  ~UseCopies();
  UseCopies(const UseCopies&) = delete;
  UseCopies& operator=(const UseCopies&) = delete;
};

/// Called by read_text and list_directory: return the copy, or null if there is none in use.
const std::string* copy_of_text(const std::filesystem::path& path);
const std::vector<DirectoryEntry>* copy_of_directory(const std::filesystem::path& path);
/// Called by read_text and list_directory with their results.
void keep_copy(const std::filesystem::path& path, const std::string& text);
void keep_copy(const std::filesystem::path& path, const std::vector<DirectoryEntry>& entries);

/// The same for read_once. `bytes` is called if copies are kept.
const std::string* copy_of_values(const std::filesystem::path& path);
void keep_values(const std::filesystem::path& path, const std::function<std::string()>& bytes);

/// Calls `read`, which sets `values` from the file at `path`, or sets them from the copy in use. For large files of
/// which all processes need a part, such as an index. A copy takes as much memory as the values. Errors: those of
/// `read`.
template <class Read, class... Values>
void read_once(const std::filesystem::path& path, const Read& read, Values&... values) {
  if (const std::string* const copy = copy_of_values(path)) {
    ByteReader reader(*copy);
    (reader.read(values), ...);
    require(reader.at_end(), "bytes are left behind the values of a file");
    return;
  }
  read();
  keep_values(path, [&] {
    ByteWriter writer;
    (writer.add(values), ...);
    return writer.take();
  });
}

}  // namespace mylos
