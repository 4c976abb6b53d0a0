#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

/// Simulates a system that has no memory to share between processes, for programs started with LD_PRELOAD naming this
/// library: reserving space in the program's files in memory fails. Other files are not affected.
extern "C" int posix_fallocate(int descriptor, off_t offset, off_t length) {
  std::array<char, 64> path{};
  const auto found = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size() - 1);
  if (found > 0 && std::string_view(path.data()).starts_with("/memfd:mylos-data")) return ENOSPC;
  using Function = int(int, off_t, off_t);
  static auto* const system_function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "posix_fallocate"));
  return system_function(descriptor, offset, length);
}

extern "C" int posix_fallocate64(int descriptor, off_t offset, off_t length) __attribute__((alias("posix_fallocate")));
