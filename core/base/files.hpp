#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// Files that appear whole or not at all, and names made fit for a one-line message.
namespace mylos {

/// The whole file as bytes. Throws std::runtime_error naming the file where it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// Throws std::runtime_error: "cannot <action> <path>: <what the system says of `code`, an errno>".
[[noreturn]] void fail_with_errno(std::string_view action, const std::filesystem::path& path, int code);

/// Flushes a directory's entries to disk; file systems that cannot are left alone.
bool sync_directory(const std::filesystem::path& directory);

/// A file written beside `target` under a temporary name. `commit` flushes it to disk and renames it onto `target`;
/// without that the temporary is removed and `target` stays as it was. Errors are std::runtime_error naming the file.
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

/// A directory filled under a temporary name beside `target`. `commit` flushes it and puts it in the place of `target`
/// (an existing one is exchanged in one step where the file system can); without that it is removed.
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
};

/// The name of the file or directory that the one called `name` is to replace when it is whole, "best" of
/// "best.partial-0badcafe"; `name` itself where no StagedFile or StagedDirectory gave it: people name copies
/// best.partial-old.
std::string_view whole_name(std::string_view name);

/// At most the first `count` bytes of a file; fewer where it is shorter or cannot be read.
std::string beginning_of(const std::filesystem::path& file, std::size_t count = 1024);

/// Removes what killed writers of `target` left beside it, and puts an earlier `target` back that one of them had moved
/// aside, where there is no other (on file systems that cannot exchange directories); for a caller that knows itself to
/// be the only writer.
void remove_abandoned(const std::filesystem::path& target);

}  // namespace mylos
