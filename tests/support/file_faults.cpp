#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <list>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

/// Makes file operations fail, and records them, in programs started with LD_PRELOAD naming this library.
///
/// MYLOS_FILE_FAULTS is a list of CALL[#FIRST[-[LAST]]]:ACTION:PATH, separated by spaces. It applies to calls of that
/// name on paths that contain PATH, in which $ stands for the end; of a rename, the target counts. FIRST and LAST
/// select some of these calls by their number in the process; by default all are selected. The action is an errno,
/// `short` (a write stores half of its data), seconds such as `3s` (the call waits first), or `kill` (SIGKILL instead
/// of the call).
///
/// MYLOS_FILE_CALLS is a file that receives a line for each successful call on paths that begin with
/// MYLOS_FILE_CALLS_UNDER: process, call, path, and the target of a rename, separated by tabs.
///
/// The calls are named create, open (without creating), mkdir, write, fsync, truncate, allocate, rename, remove, flock
/// and stat, whichever function was called. `change` is every call but open, flock and stat.
namespace {

constexpr std::string_view any_change = "change";

/// Returns the system's function that a function of this file overrides.
template <class Function>
Function* system_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

struct Rule {
  std::string call, action, path;
  unsigned long first = 1, last = std::numeric_limits<unsigned long>::max();
  std::atomic<unsigned long> seen = 0;

  explicit Rule(const std::string& word) {
    const std::size_t one = word.find(':'), two = word.find(':', one + 1);
    if (two == std::string::npos) return;
    call = word.substr(0, one);
    action = word.substr(one + 1, two - one - 1);
    path = word.substr(two + 1);
    const std::size_t number = call.find('#');
    if (number == std::string::npos) return;
    const bool is_single = std::sscanf(call.c_str() + number, "#%lu-%lu", &first, &last) == 1 && !call.ends_with('-');
    if (is_single) last = first;
    call.resize(number);
  }
  /// Counts the call if it is one of the rule's, and returns whether the rule acts on it.
  bool selects(std::string_view name, const std::string& whole) {
    const bool is_change = name != "open" && name != "flock" && name != "stat";
    if (call != name && !(call == any_change && is_change)) return false;
    if ((whole + "$").find(path) == std::string::npos) return false;
    const unsigned long number = ++seen;
    return first <= number && number <= last;
  }
};

std::list<Rule> read_rules() {
  const char* const text = std::getenv("MYLOS_FILE_FAULTS");
  std::istringstream words(text == nullptr ? "" : text);
  std::list<Rule> rules;
  for (std::string word; words >> word;) rules.emplace_back(word);
  return rules;
}

struct Fault {
  int error = 0;
  bool halves = false;
};

/// Waits or kills this process if a rule says so. Returns how the call is to fail.
Fault fault_of(const char* call, const std::string& path) {
  static std::list<Rule>& rules = *new std::list<Rule>(read_rules());  // other threads use it until the process ends
  Fault fault;
  for (Rule& rule : rules) {
    if (!rule.selects(call, path)) continue;
    if (rule.action == "kill") ::raise(SIGKILL);
    if (rule.action == "short") {
      fault.halves = true;
    } else if (rule.action.ends_with('s')) {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(rule.action.c_str())));
    } else {
      fault.error = std::atoi(rule.action.c_str());
    }
  }
  return fault;
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
  const std::string base = directory == AT_FDCWD || path.starts_with('/') ? "" : path_of(directory) + "/";
  std::array<char, PATH_MAX> real{};
  if (::realpath((base + parent).c_str(), real.data()) == nullptr) return path;
  return std::string(real.data()) + "/" + path.substr(slash == std::string::npos ? 0 : slash + 1);
}

void record(const char* call, const std::string& path, const std::string& target) {
  const char* file = std::getenv("MYLOS_FILE_CALLS");
  const char* under = std::getenv("MYLOS_FILE_CALLS_UNDER");
  if (file == nullptr || under == nullptr || !path.starts_with(under)) return;
  const std::string line = std::to_string(::getpid()) + "\t" + call + "\t" + path + "\t" + target + "\n";
  const int descriptor =
      system_function<decltype(::open)>("open")(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const auto written = system_function<decltype(::write)>("write")(descriptor, line.data(), line.size());
  if (written < 0) std::perror(file);
  ::close(descriptor);
}

/// Makes the call through `system`, unless it is to fail, and records it.
template <class System>
auto attempt(const char* call, const System& system, const std::string& path, const std::string& target = {})
    -> decltype(system()) {
  const int error = fault_of(call, target.empty() ? path : target).error;
  if (error != 0) errno = error;
  const auto result = error != 0 ? decltype(system()){-1} : system();
  if (result >= 0) record(call, path, target);
  return result;
}

/// Like attempt, for a write of `size` bytes.
template <class System>
ssize_t attempt_write(int descriptor, size_t size, const System& system) {
  const std::string path = path_of(descriptor);
  const Fault fault = fault_of("write", path);
  if (fault.error != 0) errno = fault.error;
  const ssize_t written = fault.error != 0 ? -1 : system(fault.halves ? (size + 1) / 2 : size);
  if (written >= 0) record("write", path, {});
  return written;
}

/// posix_fallocate returns the error.
template <class System>
int attempt_allocation(int descriptor, const System& system) {
  const std::string path = path_of(descriptor);
  const int error = fault_of("allocate", path).error;
  const int code = error != 0 ? error : system();
  if (code == 0) record("allocate", path, {});
  return code;
}

template <class System>
int attempt_open(int directory, const char* path, int flags, const System& system) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const bool is_read = (flags & O_ACCMODE) == O_RDONLY && (flags & O_DIRECTORY) == 0;
  if (!creates && !is_read) return system();
  return attempt(creates ? "create" : "open", system, resolved(directory, path));
}

/// Returns the last argument of an open, which only flags of files that may be created have.
mode_t mode_of(int flags, va_list arguments) {
  const bool may_create = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return may_create ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

// Functions whose names end in 64 are called by HDF5, and are the same functions on 64-bit systems.
#define MYLOS_SYSTEM(name) system_function<decltype(::name)>(#name)

extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return attempt_open(AT_FDCWD, path, flags, [&] { return MYLOS_SYSTEM(open)(path, flags, mode); });
}
extern "C" int open64(const char* path, int flags, ...) __attribute__((alias("open")));

extern "C" int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return attempt_open(directory, path, flags, [&] { return MYLOS_SYSTEM(openat)(directory, path, flags, mode); });
}

extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  return attempt(
      "mkdir", [&] { return MYLOS_SYSTEM(mkdir)(path, mode); }, resolved(AT_FDCWD, path));
}

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  return attempt_write(descriptor, size, [&](size_t part) { return MYLOS_SYSTEM(write)(descriptor, data, part); });
}

// Never shortened.
extern "C" ssize_t writev(int descriptor, const iovec* pieces, int count) {
  return attempt_write(descriptor, 0, [&](size_t) { return MYLOS_SYSTEM(writev)(descriptor, pieces, count); });
}

extern "C" ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  return attempt_write(descriptor, size,
                       [&](size_t part) { return MYLOS_SYSTEM(pwrite)(descriptor, data, part, offset); });
}
extern "C" ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset)
    __attribute__((alias("pwrite")));

extern "C" int fsync(int descriptor) {
  return attempt(
      "fsync", [&] { return MYLOS_SYSTEM(fsync)(descriptor); }, path_of(descriptor));
}

extern "C" int fdatasync(int descriptor) {
  return attempt(
      "fsync", [&] { return MYLOS_SYSTEM(fdatasync)(descriptor); }, path_of(descriptor));
}

extern "C" int ftruncate(int descriptor, off_t size) noexcept {
  return attempt(
      "truncate", [&] { return MYLOS_SYSTEM(ftruncate)(descriptor, size); }, path_of(descriptor));
}
extern "C" int ftruncate64(int descriptor, off64_t size) noexcept __attribute__((alias("ftruncate")));

extern "C" int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  return attempt(
      "allocate", [&] { return MYLOS_SYSTEM(fallocate)(descriptor, mode, offset, size); }, path_of(descriptor));
}
extern "C" int fallocate64(int descriptor, int mode, off64_t offset, off64_t size) __attribute__((alias("fallocate")));

extern "C" int posix_fallocate(int descriptor, off_t offset, off_t size) {
  return attempt_allocation(descriptor, [&] { return MYLOS_SYSTEM(posix_fallocate)(descriptor, offset, size); });
}
extern "C" int posix_fallocate64(int descriptor, off64_t offset, off64_t size)
    __attribute__((alias("posix_fallocate")));

extern "C" int rename(const char* from, const char* to) noexcept {
  return attempt(
      "rename", [&] { return MYLOS_SYSTEM(rename)(from, to); }, resolved(AT_FDCWD, from), resolved(AT_FDCWD, to));
}

extern "C" int renameat2(int from_in, const char* from, int to_in, const char* to, unsigned flags) noexcept {
  return attempt(
      "rename", [&] { return MYLOS_SYSTEM(renameat2)(from_in, from, to_in, to, flags); }, resolved(from_in, from),
      resolved(to_in, to));
}

extern "C" int unlink(const char* path) noexcept {
  return attempt(
      "remove", [&] { return MYLOS_SYSTEM(unlink)(path); }, resolved(AT_FDCWD, path));
}

extern "C" int unlinkat(int directory, const char* path, int flags) noexcept {
  return attempt(
      "remove", [&] { return MYLOS_SYSTEM(unlinkat)(directory, path, flags); }, resolved(directory, path));
}

// Called by std::filesystem::remove.
extern "C" int remove(const char* path) noexcept {
  return attempt(
      "remove", [&] { return MYLOS_SYSTEM(remove)(path); }, resolved(AT_FDCWD, path));
}

extern "C" int flock(int descriptor, int operation) noexcept {
  return attempt(
      "flock", [&] { return MYLOS_SYSTEM(flock)(descriptor, operation); }, path_of(descriptor));
}

extern "C" int stat(const char* path, struct stat* about) noexcept {
  return attempt(
      "stat", [&] { return system_function<int(const char*, struct stat*)>("stat")(path, about); }, path);
}

extern "C" int lstat(const char* path, struct stat* about) noexcept {
  return attempt(
      "stat", [&] { return system_function<int(const char*, struct stat*)>("lstat")(path, about); }, path);
}
