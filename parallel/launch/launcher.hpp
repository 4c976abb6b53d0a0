#pragma once

#include <cstddef>
#include <functional>
#include <string>

/// Information about the launcher and the batch system that started this program's ranks.
namespace mylos::parallel {

/// Returns the value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;
/// Reads this process's environment.
const char* process_environment(const char* name);

/// The name of the MPI library in a build without MPI.
inline constexpr std::string_view no_mpi = "none";

/// Checks that the launcher started `ranks` ranks, as many as MPI sees. `library` is the name of the MPI library.
/// Errors: std::runtime_error if the numbers differ: the launcher and MPI then do not belong together, and each process
/// would regard itself as the only rank.
void check_launcher(std::size_t ranks, const std::string& library, const Environment& environment);

/// Returns the rank of this process according to the launcher, before MPI is initialised; 0 if it gives none.
std::size_t launched_rank(const Environment& environment);
/// Returns the number of ranks according to the launcher; 1 if it gives none. Cray PALS does not give the number of
/// ranks; returns rank + 1 as a lower bound.
std::size_t launched_ranks(const Environment& environment);
/// Returns the number of ranks on this node according to the launcher, before MPI is initialised; 1 if it gives none.
std::size_t launched_ranks_of_node(const Environment& environment);

/// Returns true if a launcher or a process manager started this process, even one that is not known here.
bool is_launched(const Environment& environment);

/// The launcher that started this process and forwards signals to it.
enum class LauncherKind { none, open_mpi, hydra, slurm, pals };
LauncherKind launcher_kind(const Environment& environment);

/// Returns one line on how to make a run under this launcher save and end.
std::string stop_advice(const Environment& environment);
/// Returns the line that a rank prints when it gets SIGTERM or SIGINT; empty if the launcher leaves ranks the time to
/// save.
std::string termination_notice(const Environment& environment);

/// Returns the batch job of this process: "Slurm 12, task 3 of array 10, start 2" or "PBS 7.server"; empty if there is
/// none. The start is named only after a restart.
std::string batch_job(const Environment& environment);
/// Returns the batch system's name of this node if it has one, otherwise `host`.
std::string node_name(const Environment& environment, const std::string& host);

}  // namespace mylos::parallel
