#pragma once

#include "tests/support/process.hpp"

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

/// Whether this build has MPI.
bool has_mpi();

/// Whether the process is there and has not ended; one that has, and whose parent has not asked, is not.
bool is_running(long process);

}  // namespace mylos::tests
