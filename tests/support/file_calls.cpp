#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

/// Records a program's file operations; the program is started with LD_PRELOAD naming this library. For each successful
/// call, a line is appended to the file MYLOS_FILE_CALLS: process, call, path, and the target of a rename, separated by
/// tabs. Only paths in the directory MYLOS_FILE_CALLS_UNDER are recorded. The calls are named open (of a file that is
/// only read), write, fsync, rename and remove, whichever function was called.
namespace {

/// Returns the system's function that a function of this file overrides.
template <class Function>
Function* system_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size() - 1);
  return length > 0 ? path.data() : "";
}

/// Resolves the links in the path's directory, as in the paths of descriptors.
std::string resolved(int directory, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string base = directory == AT_FDCWD || path.front() == '/' ? "" : path_of(directory) + "/";
  std::array<char, PATH_MAX> real{};
  if (::realpath((base + parent).c_str(), real.data()) == nullptr) return path;
  return std::string(real.data()) + "/" + path.substr(slash == std::string::npos ? 0 : slash + 1);
}

void record(const char* call, const std::string& path, const std::string& target = "") {
  const char* file = std::getenv("MYLOS_FILE_CALLS");
  const char* under = std::getenv("MYLOS_FILE_CALLS_UNDER");
  if (file == nullptr || under == nullptr || !path.starts_with(under)) return;
  const std::string line = std::to_string(::getpid()) + "\t" + call + "\t" + path + "\t" + target + "\n";
  static const auto system_open = system_function<decltype(::open)>("open");
  const int descriptor = system_open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  static const auto system_write = system_function<decltype(::write)>("write");
  if (descriptor < 0 || system_write(descriptor, line.data(), line.size()) < 0) std::perror(file);
  ::close(descriptor);
}

/// Returns the last argument of an open, which only flags of files that may be created have.
mode_t mode_of(int flags, va_list arguments) {
  const bool may_create = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return may_create ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  static const auto system_open = system_function<decltype(::open)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const int descriptor = system_open(path, flags, mode_of(flags, arguments));
  va_end(arguments);
  const bool is_read = (flags & O_ACCMODE) == O_RDONLY && (flags & O_DIRECTORY) == 0;
  if (descriptor >= 0 && is_read) record("open", resolved(AT_FDCWD, path));
  return descriptor;
}

// Called by HDF5. It is the same function on 64-bit systems.
extern "C" int open64(const char* path, int flags, ...) __attribute__((alias("open")));

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  static const auto system_write = system_function<decltype(::write)>("write");
  const ssize_t written = system_write(descriptor, data, size);
  if (written >= 0) record("write", path_of(descriptor));
  return written;
}

extern "C" ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static const auto system_writev = system_function<decltype(::writev)>("writev");
  const ssize_t written = system_writev(descriptor, pieces, count);
  if (written >= 0) record("write", path_of(descriptor));
  return written;
}

extern "C" ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  static const auto system_pwrite = system_function<decltype(::pwrite)>("pwrite");
  const ssize_t written = system_pwrite(descriptor, data, size, offset);
  if (written >= 0) record("write", path_of(descriptor));
  return written;
}

// Called by HDF5.
extern "C" ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  static const auto system_pwrite = system_function<decltype(::pwrite64)>("pwrite64");
  const ssize_t written = system_pwrite(descriptor, data, size, offset);
  if (written >= 0) record("write", path_of(descriptor));
  return written;
}

extern "C" int fsync(int descriptor) {
  static const auto system_fsync = system_function<decltype(::fsync)>("fsync");
  const int code = system_fsync(descriptor);
  if (code == 0) record("fsync", path_of(descriptor));
  return code;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  static const auto system_rename = system_function<decltype(::rename)>("rename");
  const std::string source = resolved(AT_FDCWD, from), target = resolved(AT_FDCWD, to);
  const int code = system_rename(from, to);
  if (code == 0) record("rename", source, target);
  return code;
}

extern "C" int renameat2(int from_in, const char* from, int to_in, const char* to, unsigned flags) noexcept {
  static const auto system_rename = system_function<decltype(::renameat2)>("renameat2");
  const std::string source = resolved(from_in, from), target = resolved(to_in, to);
  const int code = system_rename(from_in, from, to_in, to, flags);
  if (code == 0) record("rename", source, target);
  return code;
}

extern "C" int unlink(const char* path) noexcept {
  static const auto system_unlink = system_function<decltype(::unlink)>("unlink");
  const int code = system_unlink(path);
  if (code == 0) record("remove", resolved(AT_FDCWD, path));
  return code;
}

extern "C" int unlinkat(int directory, const char* path, int flags) noexcept {
  static const auto system_unlinkat = system_function<decltype(::unlinkat)>("unlinkat");
  const std::string whole = resolved(directory, path);
  const int code = system_unlinkat(directory, path, flags);
  if (code == 0) record("remove", whole);
  return code;
}

// Called by std::filesystem::remove.
extern "C" int remove(const char* path) noexcept {
  static const auto system_remove = system_function<decltype(::remove)>("remove");
  const int code = system_remove(path);
  if (code == 0) record("remove", resolved(AT_FDCWD, path));
  return code;
}
