#include "tests/support/ranks.hpp"

#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace mylos::tests {
namespace {

/// The program that starts ranks; empty in a build without MPI. MYLOS_MPIEXEC in the environment replaces that of the
/// build, on machines that have another.
std::string launcher() {
  const char* const given = std::getenv("MYLOS_MPIEXEC");
  return given == nullptr || std::string(MYLOS_MPIEXEC).empty() ? MYLOS_MPIEXEC : given;
}

}  // namespace

ProgramRun run_ranks(std::size_t ranks, const std::vector<std::string>& arguments,
                     const std::filesystem::path& program) {
  // Open MPI requires these settings to run as root and with more ranks than cores. Ranks are not bound to cores,
  // because several tests may run at once.
  const EnvironmentVariable root("OMPI_ALLOW_RUN_AS_ROOT", "1"), sure("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  const EnvironmentVariable many("OMPI_MCA_rmaps_base_oversubscribe", "1");
  const EnvironmentVariable free("OMPI_MCA_hwloc_base_binding_policy", "none");
  std::vector<std::string> words{"-n", std::to_string(ranks)};
  words.push_back(program.empty() ? tests::program().string() : program.string());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunningProgram(words, "", {}, launcher()).wait();
}

std::string launcher_version() {
  if (!has_mpi()) return {};
  const std::string text = RunningProgram({"--version"}, "", {}, launcher()).wait().output;
  return text.substr(0, text.find('\n'));
}

bool OthersSurvive::is_possible() {
  const std::string version = launcher_version();
  return version.find("(Open MPI) 4.") != std::string::npos || version.find("(OpenRTE) 4.") != std::string::npos;
}

bool has_mpi() { return !launcher().empty(); }

bool is_running(long process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("State:", 0) == 0) return line.find('Z') == std::string::npos && line.find('X') == std::string::npos;
  }
  return false;
}

}  // namespace mylos::tests
