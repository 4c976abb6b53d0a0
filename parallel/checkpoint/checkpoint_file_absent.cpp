// Stand-in for builds without HDF5.
#include "core/base/error.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path) {
  fail(
      fmt::format("{}: this build has no HDF5, so it neither writes nor reads checkpoints; configure with "
                  "-DMYLOS_ENABLE_HDF5=ON",
                  path.string()));
}

}  // namespace

bool has_checkpoint_files() { return false; }

std::vector<DatasetSlot> create_checkpoint_file(const std::filesystem::path& path, std::span<const DatasetShape>,
                                                const CheckpointRecord&) {
  refuse(path);
}

CheckpointIndex read_checkpoint_index(const std::filesystem::path& path) { refuse(path); }

}  // namespace mylos::parallel
