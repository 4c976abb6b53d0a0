#pragma once

#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// Runs programs with several ranks as a user does.
namespace mylos::tests {

/// mpirun with `ranks` ranks of `program` (mylos where none is named), on as many threads each as the environment
/// says. After `limit` mpirun is told to end, and with it all ranks; then the exit code is 124.
ProgramRun run_ranks(std::size_t ranks, const std::vector<std::string>& arguments,
                     const std::filesystem::path& program = {}, std::chrono::seconds limit = std::chrono::seconds(120));

/// While it lives, Open MPI's mpirun leaves the other ranks alone where one dies. It otherwise kills them, and prints a
/// message of its own, often before they have noticed. Then its exit code is 0 all the same.
class OthersSurvive {
 public:
  /// Whether the launcher can: that of Open MPI 4.
  static bool is_possible();

 private:
  EnvironmentVariable recovery_{"OMPI_MCA_orte_enable_recovery", "1"};
};

/// The first line of what the launcher says of its version, as "mpirun (Open MPI) 4.1.4"; empty without MPI.
std::string launcher_version();

/// Whether this build has MPI.
bool has_mpi();

/// Whether the process is there and has not ended; one that has, and whose parent has not asked, is not.
bool is_running(long process);

}  // namespace mylos::tests
