#include "parallel/communicator/nccl/nccl_streams.hpp"

#include "core/kernels/products/gemm_label.hpp"

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>

/// Replaces parallel/communicator/nccl/nccl_streams.cpp. Here Kokkos computes on the host, on the launching thread, and
/// all execution spaces use one stream. Each Kokkos launch, copy, fence and matrix product (which a library may compute
/// without a launch) first waits for that stream, to which it would be ordered on a device.
namespace mylos::parallel {
namespace {

constexpr std::chrono::microseconds sum_time{200};

/// True on the threads of streams, which never wait for a stream.
thread_local bool is_stream = false;

void check(cudaError_t error) {
  if (error != cudaSuccess) std::abort();
}

/// The program's first thread uses the second device, as if selected by Kokkos. Other threads must select it
/// themselves.
const cudaError_t chosen_device = cudaSetDevice(1);

/// Never destroyed.
cudaStream_t compute_stream() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    check(chosen_device);
    check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0));
    return made;
  }();
  return stream;
}

void catch_up() {
  if (!is_stream) cudaStreamSynchronize(compute_stream());
}

void before_launch(const char*, std::uint32_t, std::uint64_t*) { catch_up(); }
/// Kokkos adds fences of its own because callbacks are set.
void before_fence(const char* label, std::uint32_t, std::uint64_t*) {
  if (!std::string_view(label).starts_with("Kokkos::Tools::")) catch_up();
}
void before_copy(Kokkos::Tools::SpaceHandle, const char*, const void*, Kokkos::Tools::SpaceHandle, const char*,
                 const void*, std::uint64_t) {
  catch_up();
}

void before_region(const char* name) {
  if (parse_gemm_label(name)) catch_up();
}

struct Sum {
  ElementType type;
  DeviceParts parts;
  std::size_t count;
  ElementType sum_type;
  void* sums;
};

void compute(void* argument) {
  is_stream = true;
  const std::unique_ptr<Sum> sum(static_cast<Sum*>(argument));
  std::this_thread::sleep_for(sum_time);
  sum_over_ranks(ExecutionSpace(), sum->type, sum->parts, sum->count, sum->sum_type, sum->sums);
}

}  // namespace

cudaStream_t stream_of(const ExecutionSpace&) {
  [[maybe_unused]] static const bool once = [] {
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(before_launch);
    tools::set_begin_parallel_reduce_callback(before_launch);
    tools::set_begin_fence_callback(before_fence);
    tools::set_begin_deep_copy_callback(before_copy);
    tools::set_push_region_callback(before_region);
    return true;
  }();
  return compute_stream();
}

ExecutionSpace space_over(cudaStream_t) { return {}; }

void launch_sum(const ExecutionSpace&, cudaStream_t stream, ElementType type, const DeviceParts& parts,
                std::size_t count, ElementType sum_type, void* sums) {
  // Kokkos checks for an error after each launch.
  if (cudaGetLastError() != cudaSuccess) std::abort();
  check(cudaLaunchHostFunc(stream, compute, new Sum{type, parts, count, sum_type, sums}));
}

}  // namespace mylos::parallel
