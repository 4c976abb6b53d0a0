#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// When the scheduler will end this job.
namespace mylos {

/// A program's output, or nothing where it cannot be run or fails.
using RunProgram = std::function<std::optional<std::string>(const std::vector<std::string>& words)>;

/// Seconds that Slurm or PBS still gives this job, by their environment and, where that does not say, their programs
/// (squeue, qstat); nothing outside a job, and where none of them knows. `now` is in seconds since 1970.
std::optional<double> remaining_walltime(double now, const RunProgram& run);
std::optional<double> remaining_walltime();

/// Seconds of squeue's "1-02:03:04", "2:03:04" or "3:04"; nothing for "UNLIMITED" and the like.
std::optional<double> parse_walltime(std::string_view text);

}  // namespace mylos
