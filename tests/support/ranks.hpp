#pragma once

#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// Runs programs with several ranks as a user would.
namespace mylos::tests {

/// Runs mpirun with `ranks` ranks of `program` (by default mylos), with the number of threads that the environment
/// specifies.
ProgramRun run_ranks(std::size_t ranks, const std::vector<std::string>& arguments,
                     const std::filesystem::path& program = {});

/// During its lifetime, Open MPI's mpirun does not kill the other ranks when one dies. Otherwise it kills them, often
/// before they notice the failure, and prints a message of its own. With this setting its exit code is 0 even so.
class OthersSurvive {
 public:
  /// True if the launcher supports this: that of Open MPI 4.
  static bool is_possible();

 private:
  EnvironmentVariable recovery_{"OMPI_MCA_orte_enable_recovery", "1"};
};

/// Returns the first line of the launcher's version, such as "mpirun (Open MPI) 4.1.4". Empty without MPI.
std::string launcher_version();

/// True if this build has MPI.
bool has_mpi();

/// True if the process exists and has not ended. A zombie has ended.
bool is_running(long process);

}  // namespace mylos::tests
