// The sample file in a build without HDF5: every function reports that HDF5 is missing.
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "data/text/sample_file.hpp"

namespace mylos::data {
namespace {

[[noreturn]] void fail_without_hdf5(const std::filesystem::path& path) {
  fail(
      fmt::format("{}: this build has no HDF5 for prepared samples; use the documents, or build with "
                  "-DMYLOS_ENABLE_HDF5=ON",
                  path.string()));
}

}  // namespace

void write_sample_file(const std::filesystem::path& path, const PreparedSamples&) { fail_without_hdf5(path); }

PreparedSamples read_sample_file(const std::filesystem::path& path) { fail_without_hdf5(path); }

bool is_sample_file(const std::filesystem::path&) { return false; }

}  // namespace mylos::data
