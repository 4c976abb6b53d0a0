#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

/// Linux control groups (cgroups), by which a scheduler or container limits a process' resources.
namespace mylos {

/// Returns the directories below `root` of this process' group and its ancestors, innermost first: Slurm sets a job's
/// limits several levels deep. `controller` is the name in /proc/self/cgroup, such as "memory"; "" for version 2.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root, std::string_view controller);

/// Returns the CPU quota of a group's directory, in processors (such as 1.5); nullopt if it has no limit.
std::optional<double> processor_quota_of(const std::filesystem::path& group);

/// Returns the smallest quota of this process' groups; nullopt if none has a limit.
std::optional<double> processor_quota();

}  // namespace mylos
