#include "train/memory.hpp"

#include "core/device.hpp"
#include "train/control_group.hpp"

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

/// The number after the word `key` in a file, 0 if it is not there.
std::size_t number_in(const std::filesystem::path& file, const std::string& key) {
  std::ifstream input(file);
  std::string word;
  std::size_t value = 0;
  while (input >> word) {
    if (word == key && input >> value) return value;
  }
  return 0;
}

/// The same in bytes where the file counts kB.
std::size_t kibibytes_in(const char* file, const std::string& key) { return number_in(file, key) * 1024; }

/// A control group's number, or all there could be where it sets none ("max").
std::size_t group_bytes(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::size_t value = 0;
  return input >> value ? value : SIZE_MAX;
}

/// Where a version of control groups keeps memory: its root, the files of the limit and of what is used, and the lines
/// of memory.stat that say how much of it is files the kernel gives back when asked.
struct GroupFiles {
  const char* root;
  std::string_view controller;  ///< of /proc/self/cgroup, between its colons
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

/// What the control group and those above it leave free; each may set a limit.
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

/// What is left of a device for what no plan counts: the code of kernels, which comes when they first run, and what
/// Kokkos and cuBLASLt keep for themselves.
constexpr std::size_t uncounted_on_device = std::size_t{1} << 30;

}  // namespace

std::size_t available_memory() {
  if constexpr (!runs_on_host) {
    const std::size_t free = free_device_memory();
    return free - std::min(free, uncounted_on_device);
  }
  return available_host_memory();
}

std::size_t available_host_memory() {
  return std::min({kibibytes_in("/proc/meminfo", "MemAvailable:"), group_memory(version_2), group_memory(version_1)});
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

}  // namespace mylos::train
