#include "parallel/communicator/nccl/nccl_version.hpp"

#include "core/base/setting_error.hpp"

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

/// Up to 2.8, versions were encoded with three digits after the major version.
constexpr int first_long_version = 10000;

int major_of(int version) { return version < first_long_version ? version / 1000 : version / 10000; }

}  // namespace

std::string nccl_remedy() { return "or let device arrays go through MPI with " + setting("communicator", "mpi"); }

std::string nccl_version_text(int version) {
  const int minor = version < first_long_version ? version % 1000 / 100 : version % 10000 / 100;
  return fmt::format("{}.{}.{}", major_of(version), minor, version % 100);
}

std::string nccl_version_obstacle(std::string_view file, int version, int built, const NcclNames& nccl) {
  if (major_of(version) == major_of(built)) return {};
  return fmt::format("{} is {} {}, and this build is for {} {}; load one of that major version (LD_LIBRARY_PATH), {}",
                     file, nccl.name, nccl_version_text(version), nccl.name, nccl_version_text(built), nccl_remedy());
}

std::string nccl_group_obstacle(int mine, int first, const NcclNames& nccl) {
  if (mine == first) return {};
  return fmt::format("{} is {} on this rank and {} on the first one; give all nodes the same (LD_LIBRARY_PATH), {}",
                     nccl.name, nccl_version_text(mine), nccl_version_text(first), nccl_remedy());
}

}  // namespace mylos::parallel
