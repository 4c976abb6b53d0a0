#include <dlfcn.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

/// Simulates a file system in which some calls fail, for programs started with LD_PRELOAD naming this library.
/// MYLOS_FAILING_CALLS contains words such as flock:37: or rename:5:/latest: a call, its errno, and a part of the paths
/// for which it fails. The calls are flock, rename (by its target) and remove.
namespace {

template <class Function>
Function* system_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Returns the errno of the call for `path`, or 0 if the system's function is to be called.
int error_of(const std::string& call, const std::string& path) {
  const char* const text = std::getenv("MYLOS_FAILING_CALLS");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; words >> word;) {
    const std::size_t first = word.find(':'), second = word.find(':', first + 1);
    if (second == std::string::npos) continue;
    const bool is_meant = word.substr(0, first) == call && path.find(word.substr(second + 1)) != std::string::npos;
    if (is_meant) return std::atoi(word.substr(first + 1, second - first - 1).c_str());
  }
  return 0;
}

/// True if the call fails; sets errno.
bool fails(const char* call, const std::string& path) {
  const int error = error_of(call, path);
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace

extern "C" int flock(int descriptor, int operation) noexcept {
  static const auto system_flock = system_function<decltype(::flock)>("flock");
  return fails("flock", "") ? -1 : system_flock(descriptor, operation);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  static const auto system_rename = system_function<decltype(::rename)>("rename");
  return fails("rename", to) ? -1 : system_rename(from, to);
}

// Called by std::filesystem::remove.
extern "C" int remove(const char* path) noexcept {
  static const auto system_remove = system_function<decltype(::remove)>("remove");
  return fails("remove", path) ? -1 : system_remove(path);
}
