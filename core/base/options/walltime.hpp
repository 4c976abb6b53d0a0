#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Facts that a scheduler gives about the job that it runs: its remaining time, and how often it was started.
namespace mylos {

/// Runs a program and returns its output, or nullopt if it cannot be run or fails.
using RunProgram = std::function<std::optional<std::string>(const std::vector<std::string>& words)>;
/// Runs a program that this machine has.
std::optional<std::string> output_of(const std::vector<std::string>& words);

/// Returns the seconds that Slurm or PBS leaves this job, from the environment or, failing that, from squeue or qstat;
/// infinity if the job has no time limit; nullopt outside a job, or if neither answers. `now` is in seconds since 1970.
std::optional<double> remaining_walltime(double now, const RunProgram& run);
std::optional<double> remaining_walltime();

/// Returns how many times PBS has started the job, from qstat; nullopt if qstat cannot be run or does not say.
std::optional<double> pbs_start_count(const std::string& job);

/// Parses squeue's "1-02:03:04", "2:03:04" or "3:04", and sbatch's "1-02" or "1-02:03", to seconds; nullopt for
/// "UNLIMITED" and the like.
std::optional<double> parse_walltime(std::string_view text);

}  // namespace mylos
