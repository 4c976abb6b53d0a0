#include "core/base/process/control_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace mylos {
namespace {

namespace fs = std::filesystem;

/// Returns the path of this process' group below the hierarchy's root. Lines have the form "4:cpu,memory:/path".
fs::path own_group(std::string_view controller) {
  std::ifstream input("/proc/self/cgroup");
  for (std::string line; std::getline(input, line);) {
    const std::size_t first = line.find(':'), second = line.find(":/", first + 1);
    if (second == std::string::npos) continue;
    const std::string names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (names.find(fmt::format(",{},", controller)) != std::string::npos) return line.substr(second + 2);
  }
  return {};
}

/// Reads a number from a file; nullopt for "max" or a missing file.
std::optional<double> number_in(std::istream&& input) {
  double value = 0.0;
  return input >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<fs::path> control_groups(const fs::path& root, std::string_view controller) {
  std::vector<fs::path> groups;
  for (fs::path group = root / own_group(controller);; group = group.parent_path()) {
    groups.push_back(group);
    if (group == root || !group.has_relative_path()) return groups;
  }
}

/// In version 2, cpu.max is "QUOTA PERIOD"; version 1 has one file for each, and -1 means no limit.
std::optional<double> processor_quota_of(const fs::path& group) {
  std::ifstream both(group / "cpu.max");
  double quota = 0.0, period = 0.0;
  if (both >> quota >> period && period > 0.0) return quota / period;
  const auto first = number_in(std::ifstream(group / "cpu.cfs_quota_us"));
  const auto second = number_in(std::ifstream(group / "cpu.cfs_period_us"));
  return first && second && *first > 0.0 && *second > 0.0 ? std::optional(*first / *second) : std::nullopt;
}

std::optional<double> processor_quota() {
  std::optional<double> least;
  for (const auto& [root, controller] : {std::pair("/sys/fs/cgroup", ""), std::pair("/sys/fs/cgroup/cpu", "cpu")}) {
    for (const fs::path& group : control_groups(root, controller)) {
      if (const auto quota = processor_quota_of(group)) least = std::min(least.value_or(*quota), *quota);
    }
  }
  return least;
}

}  // namespace mylos
