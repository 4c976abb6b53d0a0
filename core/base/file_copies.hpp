#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/files.hpp"

/// Copies of the files and directories that one process has read. Other processes use them instead of opening the
/// files.
namespace mylos {

struct FileCopies {
  std::map<std::string, std::string> texts;                        ///< bytes of files, by path
  std::map<std::string, std::vector<DirectoryEntry>> directories;  ///< entries of directories, by path
};
inline auto members(FileCopies& copies) { return std::tie(copies.texts, copies.directories); }

/// While an object exists, read_text and list_directory on its thread add their results to `copies`, except for files
/// of more than `most_bytes`. At most one object of these two classes may exist on a thread.
class KeepCopies {
 public:
  KeepCopies(FileCopies& copies, std::size_t most_bytes);
  ~KeepCopies();
  KeepCopies(const KeepCopies&) = delete;
  KeepCopies& operator=(const KeepCopies&) = delete;
};

/// While an object exists, read_text and list_directory on its thread return the results that are in `copies`. They
/// read files and directories that have no copy.
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

}  // namespace mylos
