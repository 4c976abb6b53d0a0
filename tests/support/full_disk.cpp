#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

/// Simulates a disk that is full for a while, for programs started with LD_PRELOAD naming this library.
/// MYLOS_FULL_FILES is a part of the files' paths. With MYLOS_FULL_WRITES=4-7 their 4th write stores half of its data,
/// and the 5th to 7th store nothing; with MYLOS_FULL_WRITES=4 the disk stays full. Their first MYLOS_FULL_TRUNCATIONS
/// truncations fail.
namespace {

bool is_full_file(int descriptor) {
  const char* name = std::getenv("MYLOS_FULL_FILES");
  if (name == nullptr) return false;
  std::array<char, 4096> path{};
  const auto length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size() - 1);
  return length > 0 && std::string_view(path.data()).find(name) != std::string_view::npos;
}

struct Range {
  unsigned long first = 0, last = std::numeric_limits<unsigned long>::max();
};

Range full_writes() {
  Range range;
  const char* text = std::getenv("MYLOS_FULL_WRITES");
  if (text != nullptr) std::sscanf(text, "%lu-%lu", &range.first, &range.last);
  return range;
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  using Write = ssize_t (*)(int, const void*, size_t);
  static const auto system_write = reinterpret_cast<Write>(::dlsym(RTLD_NEXT, "write"));
  static unsigned long writes = 0;
  static const Range full = full_writes();
  if (!is_full_file(descriptor)) return system_write(descriptor, data, size);
  ++writes;
  if (writes < full.first || writes > full.last) return system_write(descriptor, data, size);
  if (writes == full.first) return system_write(descriptor, data, std::max<size_t>(size / 2, 1));
  errno = ENOSPC;
  return -1;
}

extern "C" int ftruncate(int descriptor, off_t size) {
  using Truncate = int (*)(int, off_t);
  static const auto system_truncate = reinterpret_cast<Truncate>(::dlsym(RTLD_NEXT, "ftruncate"));
  static const char* const text = std::getenv("MYLOS_FULL_TRUNCATIONS");
  static unsigned long failing = text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
  if (failing == 0 || !is_full_file(descriptor)) return system_truncate(descriptor, size);
  --failing;
  errno = EIO;
  return -1;
}
