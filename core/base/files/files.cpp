#include "core/base/files/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/process/process.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/uninterrupted.hpp"

namespace mylos {
namespace {

constexpr std::size_t least_buffer = 65536;  // bytes, for files of unknown size
constexpr std::string_view lfs_pointer_mark = "version https://git-lfs.github.com/spec/";
constexpr std::string_view partial_suffix = ".partial-", replaced_suffix = ".replaced-";

/// Returns `target` without a trailing slash, so that it has a file name.
std::filesystem::path without_trailing_slash(const std::filesystem::path& target) {
  return target.has_filename() ? target : target.parent_path();
}

std::filesystem::path parent_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

std::filesystem::path temporary_beside(const std::filesystem::path& target, std::string_view suffix = partial_suffix) {
  return parent_of(target) / fmt::format("{}{}{}", target.filename().string(), suffix, unique_key());
}

/// Opens a file or directory for reading; returns -1 on failure.
int open_to_read(const std::filesystem::path& path, int flags = 0) {
  return uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); });
}

/// Locks the new temporary file or directory `descriptor` for this process, so that remove_abandoned does not remove
/// it. Does nothing if the file system has no locks. Returns false if it was removed before it was locked.
bool hold(int descriptor) {
  uninterrupted([&] { return ::flock(descriptor, LOCK_EX); });
  struct stat status {};
  return ::fstat(descriptor, &status) != 0 || status.st_nlink > 0;
}

/// Removes the temporary file or directory `path`, unless a living process holds it. Leaves one on a file system
/// without locks unless `is_ours`.
void remove_unheld(const std::filesystem::path& path, bool is_ours) {
  const int descriptor = open_to_read(path, O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return;
  const bool is_free = ::flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  std::error_code ignored;  // leftovers that cannot be removed are harmless
  if (is_free || (is_ours && errno != EWOULDBLOCK)) std::filesystem::remove_all(path, ignored);
  ::close(descriptor);
}

/// A file open for reading.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path) : path_(path), descriptor_(open_to_read(path)) {
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
    const auto count = uninterrupted([&] { return ::read(descriptor_, bytes, size); });
    if (count < 0) fail_with_errno("read", path_, errno);
    return static_cast<std::size_t>(count);
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

/// Replaces the existing directory `target` by `temporary`. Returns the path that the old one has now.
std::filesystem::path replace_directory(const std::filesystem::path& temporary, const std::filesystem::path& target) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return temporary;
  // Some network file systems cannot exchange: move the old directory aside, and back if the rename fails. If the
  // process is killed in between, remove_abandoned moves it back.
  const auto old = temporary_beside(target, replaced_suffix);
  if (::rename(target.c_str(), old.c_str()) != 0) fail_with_errno("replace", target, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const int code = errno;
    ::rename(old.c_str(), target.c_str());
    fail_with_errno("replace", target, code);
  }
  return old;
}

/// Returns the temporaries beside `target`, of this and other processes.
std::vector<std::filesystem::path> temporaries_of(const std::filesystem::path& target) {
  const std::string whole = target.filename().string();
  std::error_code ignored;  // reported by the call that creates the file
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(parent_of(target), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name != whole && whole_name(name) == whole) found.push_back(entry.path());
  }
  return found;
}

/// Most file systems list the type of an entry with its name, so that only links cost a call each.
EntryKind kind_of(const std::filesystem::directory_entry& entry) {
  std::error_code unreadable;  // counts as missing
  if (entry.is_regular_file(unreadable)) return EntryKind::file;
  if (entry.is_directory(unreadable)) return EntryKind::directory;
  return entry.exists(unreadable) ? EntryKind::other : EntryKind::missing;
}

}  // namespace

bool is_present(const std::filesystem::path& path) {
  std::error_code unreadable;  // reported by the call that opens the path
  if (std::filesystem::exists(path, unreadable)) return true;
  const std::filesystem::path target = std::filesystem::read_symlink(path, unreadable);
  if (target.empty()) return false;
  fail(
      fmt::format("{} is a link to {}, which does not exist; if it was downloaded, the download is incomplete: "
                  "repeat it",
                  path.string(), target.string()));
}

std::string read_text(const std::filesystem::path& path) {
  const Descriptor file(path);
  std::string text;
  std::size_t length = 0;
  try {
    text.resize(std::max(file.size() + 1, least_buffer));  // one extra byte, to reach the end without growing
    while (const std::size_t count = file.read(text.data() + length, text.size() - length)) {
      length += count;
      if (length == text.size()) text.resize(2 * length);
    }
  } catch (const std::bad_alloc&) {
    fail(fmt::format("{}: there is no memory for its {}", path.string(), bytes_text(std::max(file.size(), length))));
  }
  text.resize(length);
  ensure(!text.starts_with(lfs_pointer_mark),
         fmt::format("{}: a git-lfs pointer, not the file itself; run `git lfs pull` in its directory", path.string()));
  return text;
}

std::vector<DirectoryEntry> list_directory(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<DirectoryEntry> entries;
  for (std::filesystem::directory_iterator i(directory, error), end; !error && i != end; i.increment(error)) {
    entries.push_back({i->path().filename().string(), kind_of(*i)});
  }
  if (error) fail_with_errno("read", directory, error.value());
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

void fail_with_errno(std::string_view action, const std::filesystem::path& path, int code) {
  if (code == ENOENT) is_present(path);
  fail(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(code)));
}

void sync_directory(const std::filesystem::path& directory) {
  const int descriptor = open_to_read(directory, O_DIRECTORY);
  if (descriptor < 0 && errno == EACCES) return;  // a directory that may be written but not read cannot be flushed
  if (descriptor < 0) fail_with_errno("flush", directory, errno);
  const int code = uninterrupted([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  const bool cannot_flush_any = code == EINVAL || code == EBADF || code == ENOTSUP || code == ENOSYS;
  if (code != 0 && !cannot_flush_any) fail_with_errno("flush", directory, code);
}

void close_written(int descriptor, const std::filesystem::path& path) {
  // Linux closes the descriptor even if a signal interrupts this.
  if (::close(descriptor) != 0 && errno != EINTR) fail_with_errno("write", path, errno);
}

StagedFile::StagedFile(std::filesystem::path target) : target_(std::move(target)) {
  make_parent(target_);
  if (names_directory(target_)) fail_with_errno("write", target_, EISDIR);
  for (const std::filesystem::path& path : temporaries_of(target_)) {
    if (!names_directory(path)) remove_unheld(path, false);
  }
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    temporary_ = temporary_beside(target_);
    descriptor_ =
        uninterrupted([this] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (descriptor_ < 0) fail_with_errno("write", target_, errno);
  } while (!hold(descriptor_));
}

StagedFile::~StagedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void StagedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = uninterrupted([&] { return ::write(descriptor_, bytes.data(), bytes.size()); });
    if (written < 0) fail_with_errno("write", target_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void StagedFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void StagedFile::commit() {
  if (uninterrupted([this] { return ::fsync(descriptor_); }) != 0) fail_with_errno("write", target_, errno);
  const int held = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);  // keeps the lock until the file has its name
  close_written(std::exchange(descriptor_, held), target_);
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
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    temporary_ = temporary_beside(target_);
    if (::mkdir(temporary_.c_str(), 0777) != 0) fail_with_errno("create directory", target_, errno);
    descriptor_ = open_to_read(temporary_, O_DIRECTORY);
  } while (descriptor_ >= 0 && !hold(descriptor_));
}

StagedDirectory::~StagedDirectory() {
  if (descriptor_ >= 0) ::close(descriptor_);
  std::error_code ignored;  // destructors do not throw
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

void StagedDirectory::commit() {
  sync_directory(temporary_);
  std::filesystem::path replaced;
  if (names_directory(target_)) {
    replaced = replace_directory(temporary_, target_);
  } else if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail_with_errno("create directory", target_, errno);
  }
  temporary_.clear();
  sync_directory(parent_of(target_));  // if this fails, the replaced directory stays, and the next writer removes it
  if (!replaced.empty()) std::filesystem::remove_all(replaced);
}

std::string_view whole_name(std::string_view name) {
  constexpr std::size_t digits = 16, earlier_digits = 8;  // of unique_key(), and of earlier versions
  for (const std::string_view suffix : {partial_suffix, replaced_suffix}) {
    const std::size_t end = name.rfind(suffix);
    if (end == std::string_view::npos) continue;
    const std::string_view random = name.substr(end + suffix.size());
    const bool is_ours = (random.size() == digits || random.size() == earlier_digits) &&
                         random.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (is_ours) return name.substr(0, end);
  }
  return name;
}

void remove_abandoned(const std::filesystem::path& target) {
  const std::filesystem::path plain = without_trailing_slash(target);
  for (const std::filesystem::path& path : temporaries_of(plain)) {
    const bool was_replaced =
        path.filename().string().starts_with(plain.filename().string() + std::string(replaced_suffix));
    if (was_replaced && !std::filesystem::exists(plain) && ::rename(path.c_str(), plain.c_str()) == 0) continue;
    remove_unheld(path, true);
  }
}

void remove_all_abandoned(const std::filesystem::path& directory) {
  std::error_code ignored;  // there is nothing to remove
  std::set<std::string> targets;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (const std::string_view whole = whole_name(name); whole != name) targets.emplace(whole);
  }
  for (const std::string& target : targets) remove_abandoned(directory / target);
}

std::string beginning_of(const std::filesystem::path& file, std::size_t count) {
  std::string begin(count, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  return begin;
}

}  // namespace mylos
