#include "app/program/build_info.hpp"

#include "app/program/cpu_features.hpp"

#include <KokkosKernels_config.h>
#include <fmt/format.h>
#include <build_settings.hpp>  // written by CMake
#include <mylos_commit.hpp>    // written by cmake/write_commit.cmake
#include <nlohmann/json.hpp>

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
  return {.version = build_settings::version,
          .commit = MYLOS_COMMIT,
          .compiler = build_settings::compiler,
          .build_type = build_settings::build_type,
          .hdf5_is_parallel = build_settings::hdf5_is_parallel,
          .kokkos = build_settings::kokkos,
          .kokkos_kernels = fmt::format("{}.{}.{}", KOKKOSKERNELS_VERSION_MAJOR, KOKKOSKERNELS_VERSION_MINOR,
                                        KOKKOSKERNELS_VERSION_PATCH),
          .onednn = build_settings::onednn,
          .mpi = build_settings::mpi,
          .hdf5 = build_settings::hdf5};
}

nlohmann::ordered_json program_json() {
  const BuildInfo build = build_info();
  return {{"version", build.version}, {"commit", build.commit}, {"compiler", build.compiler}};
}

std::vector<std::string> built_cpu_feature_names() { return names_of(built_cpu_features); }

std::vector<std::string> present_cpu_feature_names() {
  bool present[cpu_feature_count];
  detect_cpu_features(present);
  return names_of(present);
}

}  // namespace mylos::app
