#include "parallel/launch/launcher.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace mylos::parallel {
namespace {

std::optional<std::size_t> number_in(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string text_in(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Returns the seconds between the SIGTERM that Open MPI's mpirun sends its ranks and the SIGKILL that follows. PRRTE,
/// which is mpirun since Open MPI 5, has no such option and waits for 0.25 s in its versions 3.0 to 4.1
/// (src/mca/odls/base/odls_base_default_fns.c; read, not tried).
double kill_delay(const Environment& environment) {
  if (environment("PRTE_LAUNCHED") != nullptr) return 0.25;
  return static_cast<double>(number_in(environment, "OMPI_MCA_odls_base_sigkill_timeout").value_or(1));
}

[[noreturn]] void refuse(std::size_t ranks, const std::string& library, const char* name,
                         const std::string& configured) {
  if (library == no_mpi) {
    fail(fmt::format(
        "this build has no MPI, but the launcher says {}={}, and each process would train alone; build with "
        "-DMYLOS_ENABLE_MPI=ON, or start one process",
        name, configured));
  }
  fail(
      fmt::format("MPI ({}) sees {} rank{}, but the launcher says {}={}: they do not match; start the "
                  "program with the mpirun of that MPI, or by srun with the --mpi=TYPE it was built for (srun "
                  "--mpi=list shows them)",
                  library, ranks, ranks == 1 ? "" : "s", name, configured));
}

}  // namespace

const char* process_environment(const char* name) { return std::getenv(name); }

void check_launcher(std::size_t ranks, const std::string& library, const Environment& environment) {
  // One launcher may have started another, and variables of the first one may still be set: one that agrees is enough.
  const char* differs = nullptr;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const std::optional<std::size_t> size = number_in(environment, name);
    if (size && *size == ranks) return;
    if (size && differs == nullptr) differs = name;
  }
  // Cray's launcher gives each rank its number, but not the number of ranks.
  const std::optional<std::size_t> rank = number_in(environment, "PALS_RANKID");
  if (rank && *rank >= ranks && differs == nullptr) differs = "PALS_RANKID";
  // Use the size of this job step; every process of an allocation sees SLURM_NTASKS.
  const std::optional<std::size_t> tasks = number_in(environment, "SLURM_STEP_NUM_TASKS");
  if (differs == nullptr && !rank && tasks && *tasks != ranks) differs = "SLURM_STEP_NUM_TASKS";
  if (differs != nullptr) refuse(ranks, library, differs, environment(differs));
}

std::size_t launched_rank(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID"}) {
    if (const auto rank = number_in(environment, name)) return *rank;
  }
  const bool in_step = number_in(environment, "SLURM_STEP_NUM_TASKS").has_value();
  return in_step ? number_in(environment, "SLURM_PROCID").value_or(0) : 0;
}

std::size_t launched_ranks(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto size = number_in(environment, name)) return *size;
  }
  if (const auto rank = number_in(environment, "PALS_RANKID")) return *rank + 1;
  return number_in(environment, "SLURM_STEP_NUM_TASKS").value_or(1);
}

std::size_t launched_ranks_of_node(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    if (const auto ranks = number_in(environment, name)) return *ranks;
  }
  return 1;
}

bool is_launched(const Environment& environment) {
  constexpr std::array names = {
      "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK", "PMI_FD"};
  return launcher_kind(environment) != LauncherKind::none ||
         std::ranges::any_of(names, [&](const char* name) { return environment(name) != nullptr; });
}

LauncherKind launcher_kind(const Environment& environment) {
  if (environment("PALS_RANKID") != nullptr) return LauncherKind::pals;
  // Ranks started by srun --mpi=pmix are in one of Slurm's namespaces, regardless of the variables that Open MPI sets.
  const bool by_slurm = text_in(environment, "PMIX_NAMESPACE").starts_with("slurm.");
  if (environment("OMPI_COMM_WORLD_SIZE") != nullptr && !by_slurm) return LauncherKind::open_mpi;
  if (environment("HYDI_CONTROL_FD") != nullptr) return LauncherKind::hydra;
  return environment("SLURM_STEP_NUM_TASKS") != nullptr ? LauncherKind::slurm : LauncherKind::none;
}

std::string stop_advice(const Environment& environment) {
  switch (launcher_kind(environment)) {
    case LauncherKind::open_mpi:
      return fmt::format(
          "send mpirun SIGUSR1, which it passes on; on SIGTERM and Ctrl-C it kills its ranks, {:g} s after it "
          "signalled them",
          kill_delay(environment));
    case LauncherKind::hydra:
      return "send mpiexec SIGUSR1, SIGTERM or Ctrl-C, which it passes on; on a second Ctrl-C it kills its ranks";
    case LauncherKind::slurm:
      return "scancel --signal=USR1; a plain scancel sends SIGTERM, and kills the ranks after Slurm's KillWait";
    case LauncherKind::pals:
      return "send mpiexec SIGUSR1; how long PALS leaves ranks after SIGTERM or Ctrl-C is not known here";
    case LauncherKind::none:
      break;
  }
  return "send SIGUSR1, SIGTERM or Ctrl-C; a second Ctrl-C ends the program at once";
}

std::string termination_notice(const Environment& environment) {
  if (launcher_kind(environment) != LauncherKind::open_mpi) return "";
  return fmt::format(
      "signalled to end: saves at the end of a step, but mpirun kills its ranks {:g} s after SIGTERM or Ctrl-C, "
      "whether they have saved or not; next time send SIGUSR1 to mpirun, which lets them save",
      kill_delay(environment));
}

std::string batch_job(const Environment& environment) {
  const auto text = [&](const char* name) { return text_in(environment, name); };
  if (const std::string job = text("SLURM_JOB_ID"); !job.empty()) {
    std::string name = "Slurm " + job;
    if (const std::string task = text("SLURM_ARRAY_TASK_ID"); !task.empty()) {
      name += fmt::format(", task {} of array {}", task, text("SLURM_ARRAY_JOB_ID"));
    }
    const std::size_t restarts = number_in(environment, "SLURM_RESTART_COUNT").value_or(0);
    return restarts > 0 ? fmt::format("{}, start {}", name, restarts + 1) : name;
  }
  const std::string job = text("PBS_JOBID");
  return job.empty() ? "" : "PBS " + job;
}

std::string node_name(const Environment& environment, const std::string& host) {
  const char* const name = environment("SLURMD_NODENAME");
  return name == nullptr || *name == '\0' ? host : name;
}

}  // namespace mylos::parallel
