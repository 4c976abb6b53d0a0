#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// Properties of this build, fixed at compile time.
namespace mylos::app {

struct BuildInfo {
  std::string version;
  std::string commit;  ///< "0f032da4c1b2", with "-dirty" if the tree had changes; "unknown" outside a repository
  std::string compiler;
  std::string build_type;
  bool hdf5_is_parallel = false;
  std::string kokkos, kokkos_kernels, onednn, mpi, hdf5;  ///< versions; empty if the build does not use it
};

BuildInfo build_info();
/// Returns {"version", "commit", "compiler"}, which output files record about the program that wrote them.
nlohmann::ordered_json program_json();

/// Names of the CPU features that this program was compiled for, and of those that this CPU has.
std::vector<std::string> built_cpu_feature_names();
std::vector<std::string> present_cpu_feature_names();

}  // namespace mylos::app
