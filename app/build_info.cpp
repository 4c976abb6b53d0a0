#include "app/build_info.hpp"

#include "app/cpu_features.hpp"

#include <KokkosKernels_config.h>
#include <fmt/format.h>
#include <mylos_commit.hpp>  // written by cmake/write_commit.cmake

namespace mylos::app {
namespace {

std::vector<std::string> names_of(const bool* features) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cpu_feature_count; ++i) {
    if (features[i]) names.emplace_back(cpu_feature_names[i]);
  }
  return names;
}

}  // namespace

BuildInfo build_info() {
  return {.version = MYLOS_VERSION,
          .commit = MYLOS_COMMIT,
          .compiler = MYLOS_COMPILER,
          .build_type = MYLOS_BUILD_TYPE,
          .hdf5_is_parallel = MYLOS_HDF5_IS_PARALLEL,
          .kokkos = MYLOS_KOKKOS_VERSION,
          .kokkos_kernels = fmt::format("{}.{}.{}", KOKKOSKERNELS_VERSION_MAJOR, KOKKOSKERNELS_VERSION_MINOR,
                                        KOKKOSKERNELS_VERSION_PATCH),
          .onednn = MYLOS_ONEDNN_VERSION,
          .mpi = MYLOS_MPI_VERSION,
          .hdf5 = MYLOS_HDF5_VERSION};
}

std::vector<std::string> built_cpu_feature_names() { return names_of(built_cpu_features); }

std::vector<std::string> present_cpu_feature_names() {
  bool present[cpu_feature_count];
  detect_cpu_features(present);
  return names_of(present);
}

}  // namespace mylos::app
