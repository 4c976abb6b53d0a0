// The image file in a build without HDF5: every function reports that HDF5 is missing.
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "data/images/image_file.hpp"

namespace mylos::data {
namespace {

[[noreturn]] void fail_without_image_file(const std::filesystem::path& path) {
  fail(fmt::format(
      "{}: this build has no HDF5 for prepared images; use the images, or build with -DMYLOS_ENABLE_HDF5=ON",
      path.string()));
}

}  // namespace

void write_image_file(const std::filesystem::path& path, const ImageSet&, const std::vector<PreparedImage>&,
                      std::uint64_t) {
  fail_without_image_file(path);
}

std::unique_ptr<ImageSet> open_image_file(const std::filesystem::path& path) { fail_without_image_file(path); }

bool is_image_file(const std::filesystem::path&) { return false; }

}  // namespace mylos::data
