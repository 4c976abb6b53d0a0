#include "parallel/launcher.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <charconv>
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

[[noreturn]] void refuse(std::size_t ranks, const std::string& library, const char* name, const std::string& told) {
  fail(
      fmt::format("MPI ({}) sees {} rank{}, but the launcher says {}={}: they do not belong together; start the "
                  "program with the mpirun of that MPI, or by srun with the --mpi=TYPE it was built for (srun "
                  "--mpi=list shows them)",
                  library, ranks, ranks == 1 ? "" : "s", name, told));
}

}  // namespace

void check_launcher(std::size_t ranks, const std::string& library, const Environment& environment) {
  // One launcher may have started another, whose variable is still there: one that agrees is enough.
  const char* differs = nullptr;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const std::optional<std::size_t> size = number_in(environment, name);
    if (size && *size == ranks) return;
    if (size && differs == nullptr) differs = name;
  }
  // Cray's launcher tells each rank its place, not their number.
  const std::optional<std::size_t> place = number_in(environment, "PALS_RANKID");
  if (place && *place >= ranks && differs == nullptr) differs = "PALS_RANKID";
  // Of this step, not SLURM_NTASKS, which every process of an allocation sees.
  const std::optional<std::size_t> tasks = number_in(environment, "SLURM_STEP_NUM_TASKS");
  if (differs == nullptr && !place && tasks && *tasks != ranks) differs = "SLURM_STEP_NUM_TASKS";
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
  if (const auto place = number_in(environment, "PALS_RANKID")) return *place + 1;
  return number_in(environment, "SLURM_STEP_NUM_TASKS").value_or(1);
}

std::string batch_job(const Environment& environment) {
  const auto text = [&](const char* name) {
    const char* const value = environment(name);
    return value == nullptr ? std::string() : std::string(value);
  };
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
