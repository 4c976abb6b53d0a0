#pragma once

#include "core/base/error.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/attention/tensor_core_attention.hpp"
#include "core/kernels/gpu/attention_tile_passes.hpp"
#include "core/kernels/gpu/device_stream.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

/// Launches of attention's passes on tensor cores. `Block` (cuda_block.hpp, hip_block.hpp) selects the instructions.
#if defined(MYLOS_DEVICE_BUILD)
#include "core/gpu_runtime.hpp"

namespace mylos::attention {

template <class Block, class Pass>
__global__ void __launch_bounds__(Block::Mma::threads, Block::limits_registers ? Pass::blocks : 1)
    pass_kernel(const __grid_constant__ typename Pass::Arguments all) {
  extern __shared__ __align__(matrix::tile_alignment * sizeof(Octet)) Octet shared[];
  Pass::run(Block{{shared}}, all);
}

inline void check_launch(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(fmt::format("attention on tensor cores: {}: {}", what, cudaGetErrorString(error)));
}

/// Launches a pass over `heads` heads of `samples` sequences.
template <class Block, class Pass>
void launch(const char* label, const std::optional<Work>& work, const ExecutionSpace& space, std::size_t samples,
            std::size_t heads, const typename Pass::Arguments& all) {
  constexpr int bytes = Pass::octets * sizeof(Octet);
  const std::size_t blocks = block_count(samples, heads, all.longest, Pass::C::own_rows);
  if (blocks == 0) return;
  require(blocks <= std::numeric_limits<int>::max(),
          fmt::format("attention: {} sequences of up to {} rows are more than one launch takes", samples, all.longest));
  static const cudaError_t has_room =  // set once: a process has one device
      cudaFuncSetAttribute(reinterpret_cast<const void*>(pass_kernel<Block, Pass>),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  check_launch(has_room, "asking for shared memory");
  std::uint64_t id = 0;
  Kokkos::Profiling::beginParallelFor(with_work(label, work), Kokkos::Tools::Experimental::device_id(space), &id);
  pass_kernel<Block, Pass><<<static_cast<unsigned>(blocks), Block::Mma::threads, bytes, space.cuda_stream()>>>(all);
  const cudaError_t launched = cudaGetLastError();
  Kokkos::Profiling::endParallelFor(id);
  check_launch(launched, "launching it");
}

/// Calls body(size) with the head size as a compile-time constant.
template <class Body>
void with_head_size(std::size_t size, const Body& body) {
  switch (size) {
    case 32:
      return body(std::integral_constant<int, 32>());
    case 64:
      return body(std::integral_constant<int, 64>());
    case 128:
      return body(std::integral_constant<int, 128>());
    default:
      fail(fmt::format("attention on tensor cores: heads of {}", size));  // attention_obstacle has rejected these
                                                                          // before
  }
}

/// Draws the dropout of a batch, if there is any, to kernel scratch. It is valid until the next launch that uses
/// scratch.
inline KeptPairs draw_to_scratch(const ExecutionSpace& space, const AttentionShape& shape,
                                 const PackedSequences& sequences, const DropoutKey& dropout, std::size_t rows) {
  if (!dropout.active() || sequences.longest == 0) return {};
  const std::size_t bytes = kept_pairs_bytes(shape.heads, rows, sequences.longest);
  const KeptPairs kept{.words = static_cast<std::uint32_t*>(cuda::scratch_of(space, bytes)),
                       .rows = rows,
                       .words_of_query = kept_words_of_query(sequences.longest)};
  draw_kept_pairs(space, shape, sequences, dropout, kept);
  return kept;
}

template <class Block, class T>
void launch_forward_pass(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                         const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                         const Matrix<float>& log_sum_exp) {
  const KeptPairs kept = draw_to_scratch(space, shape, sequences, dropout, qkv.extent(0));
  const auto all = forward_arguments(shape, sequences, dropout, kept, qkv, out, log_sum_exp);
  with_head_size(shape.head_size, [&](auto size) {
    launch<Block, ForwardPass<Block, T, size>>("mylos::Attention::tensor_core_forward",
                                               forward_work(shape, sequences, sizeof(T)), space,
                                               sequences.sample_ids.size(), shape.heads, all);
  });
}

template <class Block, class T>
void launch_backward_passes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                            const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                            const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                            const Matrix<float>& row_sums) {
  const KeptPairs kept = draw_to_scratch(space, shape, sequences, dropout, qkv.extent(0));
  const auto all = backward_arguments(shape, sequences, dropout, kept, qkv, out, log_sum_exp, dout, dqkv, row_sums);
  with_head_size(shape.head_size, [&](auto size) {
    launch<Block, QueryPass<Block, T, size>>("mylos::Attention::tensor_core_backward_queries",
                                             query_pass_work(shape, sequences, sizeof(T)), space,
                                             sequences.sample_ids.size(), shape.heads, all);
    launch<Block, KeyPass<Block, T, size>>("mylos::Attention::tensor_core_backward_keys",
                                           key_pass_work(shape, sequences, sizeof(T)), space,
                                           sequences.sample_ids.size(), shape.key_value_heads, all);
  });
}

/// The block whose instructions the passes of this build use for elements of T; void if they do not take T. The file
/// that instantiates the functions below defines it.
template <class T>
struct BlockOf;

template <class T>
void tensor_core_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                         const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                         const Matrix<float>& log_sum_exp) {
  using Block = typename BlockOf<T>::type;
  if constexpr (std::is_void_v<Block>) {
    fail(tensor_core_obstacle(tensor_core_architecture, precision_of<T>));
  } else {
    launch_forward_pass<Block>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
  }
}

template <class T>
void tensor_core_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                          const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                          const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                          const Matrix<float>& row_sums) {
  using Block = typename BlockOf<T>::type;
  if constexpr (std::is_void_v<Block>) {
    fail(tensor_core_obstacle(tensor_core_architecture, precision_of<T>));
  } else {
    launch_backward_passes<Block>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums);
  }
}

}  // namespace mylos::attention
#endif
