#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// Files and directories that are replaced atomically: readers see all of the new content or none of it.
namespace mylos {

/// Returns a file's bytes. Throws std::runtime_error naming the file if it cannot be read or is a git-lfs pointer.
/// Files that all ranks need are read by a FileReader (file_reader.hpp).
std::string read_text(const std::filesystem::path& path);

/// Returns whether there is a file or a directory called `path`. Throws std::runtime_error if it is a link whose target
/// does not exist, as an interrupted download leaves it in the hub's cache.
bool is_present(const std::filesystem::path& path);

/// The type of a directory entry. A symbolic link has the type of its target, or `missing` if the target cannot be
/// accessed.
enum class EntryKind : std::uint8_t { file, directory, other, missing };
struct DirectoryEntry {
  std::string name;
  EntryKind kind = EntryKind::other;
};
inline auto members(DirectoryEntry& entry) { return std::tie(entry.name, entry.kind); }
/// Returns the entries of a directory sorted by name. Throws std::runtime_error naming the directory if it cannot be
/// read.
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& directory);

/// Throws std::runtime_error: "cannot <action> <path>: <message for the errno `code`>".
[[noreturn]] void fail_with_errno(std::string_view action, const std::filesystem::path& path, int code);

/// Flushes a directory's entries to disk, so that what was there before may be removed. Errors: std::runtime_error.
void sync_directory(const std::filesystem::path& directory);

/// Closes a file that was written. Some network file systems report a full disk only here. Errors: std::runtime_error.
void close_written(int descriptor, const std::filesystem::path& path);

/// A file written under a temporary name beside `target`. `commit` flushes it to disk and renames it to `target`;
/// without a commit the temporary file is removed and `target` is unchanged. Also removes temporary files that killed
/// writers left beside `target`; those of living ones are locked. Errors are std::runtime_error naming the file.
class StagedFile {
 public:
  explicit StagedFile(std::filesystem::path target);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Writes `text` to `path` through a StagedFile.
void write_text(const std::filesystem::path& path, std::string_view text);

/// A directory filled under a temporary name beside `target`. `commit` flushes it and renames it to `target`,
/// exchanging it atomically with an existing one if the file system supports that; without a commit it is removed.
class StagedDirectory {
 public:
  explicit StagedDirectory(const std::filesystem::path& target);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;  ///< holds the lock
};

/// Returns the name that a temporary file or directory called `name` will have after its commit: "best" for
/// "best.partial-0badcafe". Returns `name` itself if it is not a temporary name of StagedFile or StagedDirectory, such
/// as a user's copy "best.partial-old".
std::string_view whole_name(std::string_view name);

/// Returns at most the first `count` bytes of a file; fewer if it is shorter or cannot be read.
std::string beginning_of(const std::filesystem::path& file, std::size_t count = 1024);

/// Removes the temporaries that killed writers left beside `target`. If `target` is missing because such a writer had
/// moved it aside (on file systems that cannot exchange directories), moves it back. On file systems without locks the
/// caller must be the only writer of `target`.
void remove_abandoned(const std::filesystem::path& target);
/// Does the same for all targets in `directory`.
void remove_all_abandoned(const std::filesystem::path& directory);

}  // namespace mylos
