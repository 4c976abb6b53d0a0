#pragma once

#include "core/kernels/attention/attention.hpp"

#include <cstddef>

/// Bounds and memory of attention by cuDNN. In every build, because plans need them without a device or the library.
namespace mylos::attention {

/// The bounds that a graph of cuDNN is made for. A batch with fewer and shorter sequences uses the same graph: the
/// sequences that it lacks have no rows.
struct CudnnBounds {
  std::size_t sequences = 0;
  std::size_t longest = 0;  ///< rows

  bool operator==(const CudnnBounds&) const = default;
};

/// Rounds up the numbers of a batch, so that batches of a run share a few graphs: to one of four values per power of
/// two, which are at most a quarter larger; `longest` to a multiple of 64 at least. Both numbers must be positive.
CudnnBounds cudnn_bounds(std::size_t samples, std::size_t longest);

/// Where the arrays in kernel scratch begin that describe a batch to cuDNN: bytes from an address that is a multiple of
/// `cudnn_alignment`.
struct CudnnScratch {
  std::size_t qkv_offsets = 0;         ///< (sequences + 1) 64-bit integers: first element of each sequence in qkv
  std::size_t out_offsets = 0;         ///< the same in out
  std::size_t statistics_offsets = 0;  ///< the same in log_sum_exp (T, A)
  std::size_t lengths = 0;             ///< (sequences) 32-bit integers
  std::size_t statistics = 0;          ///< (sequences, A, longest) floats, unless `has_packed_statistics`
  std::size_t workspace = 0;           ///< cuDNN's own
};

inline constexpr std::size_t cudnn_alignment = 256;

CudnnScratch cudnn_scratch(const CudnnBounds& bounds, std::size_t heads, bool has_packed_statistics);

/// Upper bounds of the kernel scratch of the passes, in bytes, with cuDNN's workspace as version 9.19 plans it for A100
/// and H100 (bench/cudnn_plans.cpp). The backward pass sums the gradient of queries in float for all rows within the
/// bounds, on devices of compute capability 8.0 to 8.9 twice, and with grouped heads it has the gradients of keys and
/// values for each query head. A device that is not known takes the most.
std::size_t cudnn_forward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest);
std::size_t cudnn_backward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                   const GpuArchitecture& device);

}  // namespace mylos::attention
