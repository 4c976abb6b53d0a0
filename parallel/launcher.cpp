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

}  // namespace mylos::parallel
