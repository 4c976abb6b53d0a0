#include "core/kernels/attention/cudnn_attention_sizes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mylos::attention {
namespace {

/// Memory that cuDNN needs besides the arrays that grow with the batch.
constexpr std::size_t least_workspace = std::size_t{1} << 20;

std::size_t rounded_up(std::size_t size, std::size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

/// Rounds up to a quarter of the power of two below, and to `least`.
std::size_t in_quarters(std::size_t size, std::size_t least) {
  return rounded_up(size, size <= least ? least : std::max(least, std::bit_floor(size - 1) / 4));
}

/// Query rows of all heads within the bounds.
std::size_t padded_rows(const AttentionShape& shape, const CudnnBounds& bounds) {
  return bounds.sequences * shape.heads * bounds.longest;
}

}  // namespace

CudnnBounds cudnn_bounds(std::size_t samples, std::size_t longest) {
  constexpr std::size_t least_rows = 64;
  return {in_quarters(samples, 1), in_quarters(longest, least_rows)};
}

CudnnScratch cudnn_scratch(const CudnnBounds& bounds, std::size_t heads, bool has_packed_statistics) {
  const std::size_t of_offsets = rounded_up((bounds.sequences + 1) * sizeof(std::int64_t), cudnn_alignment);
  CudnnScratch scratch;
  scratch.out_offsets = of_offsets;
  scratch.statistics_offsets = 2 * of_offsets;
  scratch.lengths = 3 * of_offsets;
  scratch.statistics = scratch.lengths + rounded_up(bounds.sequences * sizeof(std::int32_t), cudnn_alignment);
  const std::size_t statistics = has_packed_statistics ? 0 : bounds.sequences * heads * bounds.longest * sizeof(float);
  scratch.workspace = scratch.statistics + rounded_up(statistics, cudnn_alignment);
  return scratch;
}

std::size_t cudnn_forward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest) {
  if (samples == 0 || longest == 0) return 0;
  return cudnn_scratch(cudnn_bounds(samples, longest), shape.heads, false).workspace + least_workspace +
         cudnn_alignment;
}

std::size_t cudnn_backward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                   const GpuArchitecture& device) {
  if (samples == 0 || longest == 0) return 0;
  const std::size_t rows = padded_rows(shape, cudnn_bounds(samples, longest));
  const std::size_t gradients = device.number / 10 == 8 || !device.is_gpu() ? 2 : 1;
  const std::size_t queries = rows * (1 + gradients * shape.head_size) * sizeof(float);  // sums of dout * out; dquery
  const std::size_t keys = shape.key_value_heads == shape.heads ? 0 : 2 * rows * shape.head_size * sizeof(bfloat16);
  return cudnn_forward_scratch(shape, samples, longest) + queries + keys;
}

}  // namespace mylos::attention
