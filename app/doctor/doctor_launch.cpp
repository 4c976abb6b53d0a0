#include "app/doctor/doctor_checks.hpp"

#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <string_view>

namespace mylos::app {
namespace {

bool is_set(const parallel::Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value != nullptr && *value != '\0';
}

/// Returns whether this process runs in a job with several tasks but was not started by its launcher.
bool is_beside_launcher(const parallel::Environment& environment) {
  const char* const tasks = environment("SLURM_NTASKS");
  return is_set(environment, "SLURM_JOB_ID") && !is_set(environment, "SLURM_STEP_NUM_TASKS") && tasks != nullptr &&
         std::string_view(tasks) != "1" && parallel::launched_ranks(environment) == 1;
}

std::string launcher_advice(const MpiFacts& mpi, const parallel::Environment& environment) {
  if (!is_set(environment, "SLURM_STEP_NUM_TASKS")) return "start it with the mpirun of that MPI (which mpirun)";
  const bool is_open_mpi = mpi.library.starts_with("Open MPI");
  return fmt::format("start it with srun --mpi={}, or with the mpirun of that MPI; srun --mpi=list shows the types",
                     is_open_mpi ? "pmix" : "pmi2");
}

Finding signals_finding(const parallel::Environment& environment) {
  return {Level::ok, "signals", "to save and end a run: " + parallel::stop_advice(environment)};
}

}  // namespace

Findings launch_findings(const MpiFacts& mpi, const parallel::Environment& environment) {
  const std::size_t launched = parallel::launched_ranks(environment);
  if (!mpi.is_built) {
    if (launched <= 1)
      return {{Level::ok, "MPI", "none: this build runs as one process"}, signals_finding(environment)};
    return {
        {Level::error, "launch",
         fmt::format("this build has no MPI, but the launcher started {} processes; each would train alone", launched),
         "build with -DMYLOS_ENABLE_MPI=ON, or start one process"}};
  }
  Findings findings = {{Level::ok, "MPI", fmt::format("{}, {}", mpi.library, mpi.thread_level)}};
  try {
    parallel::check_launcher(mpi.ranks, mpi.library, environment);
  } catch (const std::exception& error) {
    const std::string_view text(error.what());
    // The advice in the text fits any launcher; replace it, because the launcher is known here.
    findings.push_back(
        {Level::error, "launch", std::string(text.substr(0, text.find(';'))), launcher_advice(mpi, environment)});
    return findings;
  }
  if (mpi.ranks == 1 && is_beside_launcher(environment)) {
    findings.push_back({Level::warning, "launch",
                        fmt::format("one process, in a job of {} tasks", printable(environment("SLURM_NTASKS"))),
                        "srun mylos doctor checks all of them"});
    return findings;
  }
  findings.push_back(
      {Level::ok, "launch", fmt::format("{}, as announced by the launcher", count_of(mpi.ranks, "rank"))});
  findings.push_back(signals_finding(environment));
  return findings;
}

Findings job_findings(const parallel::Environment& environment, std::optional<double> remaining) {
  const std::string job = parallel::batch_job(environment);
  if (job.empty())
    return {{Level::ok, "job", "none: not in a Slurm or PBS job; --stop-before needs --walltime T here"}};
  if (!remaining) {
    return {{Level::warning, "job", job + ", whose end is not known from its environment, squeue or qstat",
             "use --walltime T with --stop-before, or --checkpoint-every, to save a run before its end"}};
  }
  if (std::isinf(*remaining)) return {{Level::ok, "job", job + ", without a time limit: --stop-before has no effect"}};
  return {{Level::ok, "job",
           fmt::format("{}, {} left according to the scheduler, as --stop-before sees it", job,
                       duration_text(*remaining))}};
}

Findings exchange_findings(std::size_t ranks, std::size_t nodes, double shortest, double longer, std::size_t bytes) {
  if (ranks == 1) return {};
  // A message takes a few microseconds within a node, and tens of microseconds between nodes over TCP.
  constexpr double slow = 5e-3;
  const bool is_slow = shortest > slow;
  return {
      {is_slow ? Level::warning : Level::ok, "MPI",
       fmt::format("{} on {} gather 8 bytes of each in {}, {} in {}", count_of(ranks, "rank"), count_of(nodes, "node"),
                   value_text(shortest, Quantity::seconds), bytes_text(bytes), value_text(longer, Quantity::seconds)),
       is_slow ? "more ranks than processors, or MPI uses a slow network: mylos bench collectives shows more" : ""}};
}

Findings clock_findings(std::span<const ClockOffset> offsets) {
  if (offsets.empty()) return {};
  const auto far = std::ranges::max_element(
      offsets, {}, [](const ClockOffset& each) { return std::abs(each.ahead) - each.uncertainty; });
  constexpr double tolerated = 1.0;
  const double away = std::abs(far->ahead);
  const std::string text =
      fmt::format("rank {} is {} {} rank 0, give or take {}", far->rank, value_text(away, Quantity::seconds),
                  far->ahead < 0.0 ? "behind" : "ahead of", value_text(far->uncertainty, Quantity::seconds));
  if (away - far->uncertainty <= tolerated) return {{Level::ok, "clock", "the farthest apart: " + text}};
  return {{Level::warning, "clock", text,
           "ask the site to synchronise the clocks of the nodes (chrony): logs and --stop-before use them"}};
}

Findings environment_findings(std::span<const std::string> variables) {
  static constexpr std::array prefixes = {"OMP_",   "KMP_", "GOMP_", "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "MPICH_",
                                          "I_MPI_", "UCX_", "FI_",   "NCCL_",     "HDF5_",     "CUDA_",     "MALLOC_"};
  // Set by launchers and by Mylos for their own use.
  static constexpr std::array own = {"OMPI_MCA_ess",   "OMPI_MCA_orte", "OMPI_MCA_pmix",        "OMPI_MCA_initial",
                                     "OMPI_MCA_shmem", "PMIX_MCA_mca",  "HDF5_USE_FILE_LOCKING"};
  std::vector<std::string> shown;
  for (const std::string& variable : variables) {
    const auto begins = [&](const char* prefix) { return variable.starts_with(prefix); };
    if (std::ranges::any_of(prefixes, begins) && std::ranges::none_of(own, begins))
      shown.push_back(printable(variable));
  }
  if (shown.empty()) return {{Level::ok, "environment", "no variable of MPI, NCCL, OpenMP or HDF5 is set"}};
  std::ranges::sort(shown);
  Findings findings;  // one per variable, so that ranks list only those that differ
  for (std::string& each : shown) findings.push_back({Level::ok, "environment", std::move(each)});
  return findings;
}

}  // namespace mylos::app
