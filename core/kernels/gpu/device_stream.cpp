#include "core/kernels/gpu/device_stream.hpp"

#include "core/gpu_runtime.hpp"

#include <cstdint>

namespace mylos::cuda {

void* stream_of(const ExecutionSpace& space) { return space.cuda_stream(); }

int capability_of(const ExecutionSpace& space) {
  const auto& properties = space.cuda_device_prop();
  return 10 * properties.major + properties.minor;
}

void* scratch_of(const ExecutionSpace& space, std::size_t bytes) {
  // Does what Kokkos' launches of teams do. Kokkos has no public function for memory that its kernels and others share.
  auto& instance = *space.impl_internal_space_instance();
  const int pool = instance.acquire_team_scratch_space();
  void* const scratch = instance.resize_team_scratch_space(pool, static_cast<std::int64_t>(bytes));
  instance.release_team_scratch_space(pool);
  return scratch;
}

}  // namespace mylos::cuda
