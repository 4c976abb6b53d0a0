#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

/// A disk that is slow to take some files, for a program that is started with LD_PRELOAD naming this library:
/// MYLOS_SLOW_FILES is a part of the files' names, MYLOS_SLOW_SECONDS how long fsync takes for each.
extern "C" int fsync(int descriptor) {
  const char* slow = std::getenv("MYLOS_SLOW_FILES");
  const char* seconds = std::getenv("MYLOS_SLOW_SECONDS");
  std::array<char, 4096> path{};
  const auto length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size() - 1);
  if (slow != nullptr && seconds != nullptr && length > 0 &&
      std::string_view(path.data()).find(slow) != std::string_view::npos) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(seconds)));
  }
  using Fsync = int (*)(int);
  static const auto system_fsync = reinterpret_cast<Fsync>(::dlsym(RTLD_NEXT, "fsync"));
  return system_fsync(descriptor);
}
