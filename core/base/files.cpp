#include "core/base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file_copies.hpp"

namespace mylos {
namespace {

constexpr std::size_t least_buffer = 65536;  // bytes, for files of unknown size
constexpr std::string_view partial_suffix = ".partial-", replaced_suffix = ".replaced-";

/// Returns `target` without a trailing slash, so that it has a file name.
std::filesystem::path without_trailing_slash(const std::filesystem::path& target) {
  return target.has_filename() ? target : target.parent_path();
}

std::filesystem::path parent_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

/// Returns a name beside `target` that is unique across processes and nodes.
std::filesystem::path temporary_beside(const std::filesystem::path& target, std::string_view suffix = partial_suffix) {
  std::random_device random;
  return parent_of(target) / fmt::format("{}{}{:08x}", target.filename().string(), suffix, random());
}

/// A file open for reading.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail_with_errno("read", path_, errno);
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  /// Size in bytes; 0 if unknown, as for a pipe.
  std::size_t size() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
  }
  /// Reads at most `size` bytes; returns 0 at the end. Throws on errors; for a directory, at the first call.
  std::size_t read(char* bytes, std::size_t size) const {
    while (true) {
      const auto count = ::read(descriptor_, bytes, size);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) fail_with_errno("read", path_, errno);
    }
  }

 private:
  const std::filesystem::path& path_;
  int descriptor_;
};

bool names_directory(const std::filesystem::path& path) {
  std::error_code ignored;  // errors are reported by the call that opens the path
  return std::filesystem::is_directory(path, ignored);
}

void make_parent(const std::filesystem::path& target) {
  std::error_code code;
  std::filesystem::create_directories(parent_of(target), code);
  if (code) fail(fmt::format("cannot create directory {}: {}", parent_of(target).string(), code.message()));
}

/// Replaces the existing directory `target` by `temporary`. The old one is removed once the rename is safely on disk;
/// if that cannot be ensured it stays, and the next writer removes it.
void replace_directory(const std::filesystem::path& temporary, const std::filesystem::path& target) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    if (sync_directory(parent_of(target))) std::filesystem::remove_all(temporary);
    return;
  }
  // Some network file systems cannot exchange: move the old directory aside, and back if the rename fails. If the
  // process is killed in between, remove_abandoned moves it back.
  const auto old = temporary_beside(target, replaced_suffix);
  if (::rename(target.c_str(), old.c_str()) != 0) fail_with_errno("replace", target, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const int code = errno;
    ::rename(old.c_str(), target.c_str());
    fail_with_errno("replace", target, code);
  }
  if (sync_directory(parent_of(target))) std::filesystem::remove_all(old);
}

/// Most file systems list the type of an entry with its name, so that only links cost a call each.
EntryKind kind_of(const std::filesystem::directory_entry& entry) {
  std::error_code unreadable;  // counts as missing
  if (entry.is_regular_file(unreadable)) return EntryKind::file;
  if (entry.is_directory(unreadable)) return EntryKind::directory;
  return entry.exists(unreadable) ? EntryKind::other : EntryKind::missing;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  if (const std::string* const copy = copy_of_text(path)) return *copy;
  const Descriptor file(path);
  std::string text(std::max(file.size() + 1, least_buffer), '\0');  // one extra byte, to reach the end without growing
  std::size_t length = 0;
  while (const std::size_t count = file.read(text.data() + length, text.size() - length)) {
    length += count;
    if (length == text.size()) text.resize(2 * length);
  }
  text.resize(length);
  keep_copy(path, text);
  return text;
}

std::vector<DirectoryEntry> list_directory(const std::filesystem::path& directory) {
  if (const std::vector<DirectoryEntry>* const copy = copy_of_directory(directory)) return *copy;
  std::error_code error;
  std::vector<DirectoryEntry> entries;
  for (std::filesystem::directory_iterator i(directory, error), end; !error && i != end; i.increment(error)) {
    entries.push_back({i->path().filename().string(), kind_of(*i)});
  }
  if (error) fail_with_errno("read", directory, error.value());
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  keep_copy(directory, entries);
  return entries;
}

void fail_with_errno(std::string_view action, const std::filesystem::path& path, int code) {
  fail(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(code)));
}

bool sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  // EINVAL: this file system has nothing to flush for a directory.
  const bool is_done = ::fsync(descriptor) == 0 || errno == EINVAL;
  ::close(descriptor);
  return is_done;
}

StagedFile::StagedFile(std::filesystem::path target) : target_(std::move(target)) {
  make_parent(target_);
  if (names_directory(target_)) fail_with_errno("write", target_, EISDIR);
  temporary_ = temporary_beside(target_);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with_errno("write", target_, errno);
}

StagedFile::~StagedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void StagedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("write", target_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void StagedFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void StagedFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with_errno("write", target_, errno);
  // Some network file systems report a full disk only at close.
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno("write", target_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno("write", target_, errno);
  temporary_.clear();
  sync_directory(parent_of(target_));
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  StagedFile file(path);
  file.write(text);
  file.commit();
}

StagedDirectory::StagedDirectory(const std::filesystem::path& target) : target_(without_trailing_slash(target)) {
  make_parent(target_);
  temporary_ = temporary_beside(target_);
  if (::mkdir(temporary_.c_str(), 0777) != 0) fail_with_errno("create directory", target_, errno);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;  // destructors do not throw
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

void StagedDirectory::commit() {
  sync_directory(temporary_);
  if (names_directory(target_)) {
    replace_directory(temporary_, target_);
  } else if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail_with_errno("create directory", target_, errno);
  }
  temporary_.clear();
  sync_directory(parent_of(target_));
}

std::string_view whole_name(std::string_view name) {
  constexpr std::size_t digits = 8;
  for (const std::string_view suffix : {partial_suffix, replaced_suffix}) {
    const std::size_t end = name.rfind(suffix);
    if (end == std::string_view::npos) continue;
    const std::string_view random = name.substr(end + suffix.size());
    const bool is_ours =
        random.size() == digits && random.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (is_ours) return name.substr(0, end);
  }
  return name;
}

void remove_abandoned(const std::filesystem::path& target) {
  const std::filesystem::path plain = without_trailing_slash(target);
  const std::string whole = plain.filename().string();
  std::error_code ignored;  // leftovers that cannot be removed are harmless
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(parent_of(plain), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name != whole && whole_name(name) == whole) left.push_back(entry.path());
  }
  for (const std::filesystem::path& path : left) {
    const bool was_replaced = path.filename().string().starts_with(whole + std::string(replaced_suffix));
    if (was_replaced && !std::filesystem::exists(plain) && ::rename(path.c_str(), plain.c_str()) == 0) continue;
    std::filesystem::remove_all(path, ignored);
  }
}

std::string beginning_of(const std::filesystem::path& file, std::size_t count) {
  std::string begin(count, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  return begin;
}

}  // namespace mylos
