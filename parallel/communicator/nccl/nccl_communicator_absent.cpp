#include "parallel/communicator/nccl/nccl_communicator.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/nccl/nccl_version.hpp"

/// Stand-in for builds without NCCL.
namespace mylos::parallel {

bool has_nccl() { return false; }

std::string nccl_obstacle() {
  return "this build has no NCCL; build with -DMYLOS_ENABLE_NCCL=ON (on top of a build for GPUs and MPI), " +
         nccl_remedy();
}

std::string found_nccl_version() { fail(nccl_obstacle()); }

std::unique_ptr<Communicator> make_nccl_communicator(MpiContext&, const std::shared_ptr<MpiRanks>&, const DeviceSums&) {
  fail(nccl_obstacle());
}

}  // namespace mylos::parallel
