#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// What this build is, fixed when it was compiled.
namespace mylos::app {

struct BuildInfo {
  std::string version;
  std::string commit;  ///< "0f032da4c1b2", with "-dirty" where the tree had changes; "unknown" outside a repository
  std::string compiler;
  std::string build_type;
  bool hdf5_is_parallel = false;
  std::string kokkos, kokkos_kernels, onednn, mpi, hdf5;  ///< versions; empty where the build is without
};

BuildInfo build_info();
/// {"version", "commit", "compiler"}: what files say of the program that wrote them.
nlohmann::ordered_json program_json();

/// Names of the CPU features this program was compiled for, and of those that the CPU here has.
std::vector<std::string> built_cpu_feature_names();
std::vector<std::string> present_cpu_feature_names();

}  // namespace mylos::app
