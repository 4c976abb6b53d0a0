#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

/// Simulates a disk that is slow for some files, for programs started with LD_PRELOAD naming this library.
/// MYLOS_SLOW_FILES is a part of the files' names, and MYLOS_SLOW_SECONDS is the duration of each fsync of them. A stat
/// of a path that contains MYLOS_SLOW_STATS takes as long, as on a mount whose server is gone.
namespace {

void wait_where(const char* variable, std::string_view path) {
  const char* slow = std::getenv(variable);
  const char* seconds = std::getenv("MYLOS_SLOW_SECONDS");
  if (slow == nullptr || seconds == nullptr || path.find(slow) == std::string_view::npos) return;
  std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds)));
}

using Stat = int (*)(const char*, struct stat*);

int slow_stat(const char* name, const char* path, struct stat* about) {
  wait_where("MYLOS_SLOW_STATS", path);
  return reinterpret_cast<Stat>(::dlsym(RTLD_NEXT, name))(path, about);
}

}  // namespace

extern "C" int fsync(int descriptor) {
  std::array<char, 4096> path{};
  const auto length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size() - 1);
  if (length > 0) wait_where("MYLOS_SLOW_FILES", path.data());
  using Fsync = int (*)(int);
  static const auto system_fsync = reinterpret_cast<Fsync>(::dlsym(RTLD_NEXT, "fsync"));
  return system_fsync(descriptor);
}

extern "C" int stat(const char* path, struct stat* about) { return slow_stat("stat", path, about); }
extern "C" int lstat(const char* path, struct stat* about) { return slow_stat("lstat", path, about); }
