#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

/// Linux' control groups, in which a scheduler or a container limits what a process may have.
namespace mylos {

/// The folder below `root` of this process' group, and those of the groups above it, the innermost first: Slurm sets a
/// job's limits far down. `controller` as /proc/self/cgroup names it: "memory"; "" in version 2.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root, std::string_view controller);

/// Processors' worth of time that the group of a folder may take, such as 1.5; nothing where it sets no limit.
std::optional<double> processor_quota_of(const std::filesystem::path& group);

/// The least of this process' groups.
std::optional<double> processor_quota();

}  // namespace mylos
