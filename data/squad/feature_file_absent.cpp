// The feature file in a build without HDF5: every function reports that HDF5 is missing.
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "data/squad/feature_file.hpp"

namespace mylos::data {
namespace {

[[noreturn]] void fail_without_hdf5(const std::filesystem::path& path) {
  fail(fmt::format("{}: this build has no HDF5 for feature files; use the .json, or build with -DMYLOS_ENABLE_HDF5=ON",
                   path.string()));
}

}  // namespace

void write_feature_file(const std::filesystem::path& path, const PreparedFeatures&) { fail_without_hdf5(path); }

bool is_feature_file(const std::filesystem::path&) { return false; }

PreparedFeatures read_feature_file(const std::filesystem::path& path) { fail_without_hdf5(path); }

}  // namespace mylos::data
