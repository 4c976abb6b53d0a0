#include "train/engine/memory/memory.hpp"

#include "core/base/process/control_group.hpp"
#include "core/base/text/quantities.hpp"
#include "core/device.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace mylos::train {
namespace {

/// Returns the number after the word `key` in a file, or 0 if it is not there.
std::size_t number_in(const std::filesystem::path& file, const std::string& key) {
  std::ifstream input(file);
  std::string word;
  std::size_t value = 0;
  while (input >> word) {
    if (word == key && input >> value) return value;
  }
  return 0;
}

/// Returns the same in bytes, for files that count kB.
std::size_t kibibytes_in(const char* file, const std::string& key) { return number_in(file, key) * 1024; }

/// Returns a number of a control group, or SIZE_MAX if it sets none ("max").
std::size_t group_bytes(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::size_t value = 0;
  return input >> value ? value : SIZE_MAX;
}

/// The memory files of a control-group version: root, files of the limit and the usage, and keys of memory.stat for
/// page cache that the kernel can reclaim.
struct GroupFiles {
  const char* root;
  std::string_view controller;  ///< controller in /proc/self/cgroup, between the colons
  const char* limit;
  const char* used;
  std::array<const char*, 2> caches;
};
constexpr GroupFiles version_2 = {
    "/sys/fs/cgroup", "", "memory.max", "memory.current", {"inactive_file", "active_file"}};
constexpr GroupFiles version_1 = {"/sys/fs/cgroup/memory",
                                  "memory",
                                  "memory.limit_in_bytes",
                                  "memory.usage_in_bytes",
                                  {"total_inactive_file", "total_active_file"}};

/// Returns the bytes left by the control group and its ancestors, each of which may set a limit.
std::size_t group_memory(const GroupFiles& files) {
  std::size_t least = SIZE_MAX;
  for (const std::filesystem::path& group : control_groups(files.root, files.controller)) {
    const std::size_t limit = group_bytes(group / files.limit), used = group_bytes(group / files.used);
    if (limit == SIZE_MAX || used == SIZE_MAX) continue;
    std::size_t held = used;
    for (const char* cache : files.caches) held -= std::min(held, number_in(group / "memory.stat", cache));
    least = std::min(least, limit > held ? limit - held : 0);
  }
  return least;
}

/// Device memory reserved for allocations that no plan counts: kernel code, which is loaded at the first launch, and
/// buffers of Kokkos and cuBLASLt.
constexpr std::size_t uncounted_on_device = std::size_t{1} << 30;

/// Address space that libraries reserve during a run and barely touch, so that no plan counts it: OpenBLAS reserves 128
/// MiB, and waits forever if it cannot have them.
constexpr std::size_t uncounted_address_space = std::size_t{256} << 20;

std::size_t address_space_limit() {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? static_cast<std::size_t>(limit.rlim_cur) : SIZE_MAX;
}

/// Returns the bytes that may still be reserved; SIZE_MAX without a limit.
std::size_t address_space_left() {
  const std::size_t limit = address_space_limit();
  if (limit == SIZE_MAX) return limit;
  const std::size_t taken = kibibytes_in("/proc/self/status", "VmSize:") + uncounted_address_space;
  return limit - std::min(limit, taken);
}

}  // namespace

std::size_t available_memory(std::size_t sharing) {
  if constexpr (!runs_on_host) {
    const std::size_t free = free_device_memory();
    return (free - std::min(free, uncounted_on_device)) / sharing;
  }
  return std::min(available_host_memory() / sharing, address_space_left());
}

std::string address_space_note() {
  const std::size_t limit = runs_on_host ? address_space_limit() : SIZE_MAX;
  return limit == SIZE_MAX ? "" : fmt::format(" (the address space is limited to {}: ulimit -v)", bytes_text(limit));
}

std::size_t available_host_memory() {
  return std::min({kibibytes_in("/proc/meminfo", "MemAvailable:"), group_memory(version_2), group_memory(version_1)});
}

void bound_heaps() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
}

void release_unused_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

std::size_t resident_memory() {
  if constexpr (!runs_on_host) return used_device_memory();
  return kibibytes_in("/proc/self/status", "VmRSS:");
}

std::size_t peak_resident_memory() {
  if constexpr (!runs_on_host) return used_device_memory();
  return kibibytes_in("/proc/self/status", "VmHWM:");
}

bool reset_peak_resident_memory() {
  if constexpr (!runs_on_host) return true;
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;  // proc(5): resets VmHWM to the current resident size
  return file.good();
}

}  // namespace mylos::train
