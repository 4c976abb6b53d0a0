#pragma once

#include <cstddef>
#include <functional>
#include <string>

/// What started the ranks of this program.
namespace mylos::parallel {

/// An environment variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;
/// This process's environment.
const char* process_environment(const char* name);

/// Errors: std::runtime_error where the launcher started another number of ranks than `ranks`, MPI's: then MPI and the
/// launcher do not belong together, and each process would take itself for the only one. `library`: MPI's name.
void check_launcher(std::size_t ranks, const std::string& library, const Environment& environment);

/// What the launcher told this process before MPI begins: its rank, 0 where it told nothing,
std::size_t launched_rank(const Environment& environment);
/// and how many it started, 1 where it told nothing. Cray's tells no number: then at least this process' place counts.
std::size_t launched_ranks(const Environment& environment);

/// The launcher that started this process and passes signals on to it.
enum class LauncherKind { none, open_mpi, hydra, slurm, pals };
LauncherKind launcher_kind(const Environment& environment);

/// How a run that this launcher started is made to save and end, in one line.
std::string stop_advice(const Environment& environment);
/// Returns the line that a rank prints when it gets SIGTERM or SIGINT. It is empty where the launcher leaves ranks the
/// time to save.
std::string termination_notice(const Environment& environment);

/// The batch job that this process belongs to, "Slurm 12, task 3 of array 10, start 2" or "PBS 7.server"; empty where
/// there is none. A job's first start is not counted.
std::string batch_job(const Environment& environment);
/// What the batch system calls this node, else `host`.
std::string node_name(const Environment& environment, const std::string& host);

}  // namespace mylos::parallel
