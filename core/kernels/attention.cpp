#include "core/kernels/attention.hpp"

#include "core/base/error.hpp"
#include "core/kernels/attention_blocks.hpp"
#include "core/kernels/tensor_core_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mylos {

std::string_view to_string(AttentionKernel kernel) {
  return kernel == AttentionKernel::tensor_cores ? "tensor-cores" : "portable";
}

std::string attention_obstacle(AttentionKernel kernel, Precision precision) {
  if (kernel == AttentionKernel::portable) return {};
  return attention::tensor_core_obstacle(attention::tensor_core_capability, precision);
}

std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size) {
  const std::string obstacle = attention_obstacle(kernel, precision);
  if (kernel == AttentionKernel::portable || !obstacle.empty()) return obstacle;
  if (head_size == 32 || head_size == 64 || head_size == 128) return {};
  return fmt::format("tensor cores take heads of 32, 64 or 128 elements, not of {}", head_size);
}

AttentionKernel fastest_attention(Precision precision, std::size_t head_size, int capability) {
  // The compute capabilities of GPUs in bench/results on which losses with this kernel agreed with those of a CPU.
  constexpr std::array validated = {90};
  // A build for 7.0 runs on later GPUs, but with other instructions than those that were validated there.
  const bool has_instructions_of_device = attention::tensor_core_capability == (capability < 80 ? 70 : 80);
  const bool is_validated = has_instructions_of_device && std::ranges::find(validated, capability) != validated.end();
  const AttentionKernel fastest = AttentionKernel::tensor_cores;
  return is_validated && attention_obstacle(fastest, precision, head_size).empty() ? fastest
                                                                                   : AttentionKernel::portable;
}

}  // namespace mylos

namespace mylos::attention {

std::string tensor_core_obstacle(int capability, Precision precision) {
  if (capability == 0) {
    return "this build has no kernels for tensor cores; they need a build for GPUs of compute capability 7.0 or later";
  }
  if (precision == Precision::float16 || (precision == Precision::bfloat16 && capability >= 80)) return {};
  return fmt::format("tensor cores {}, not {}",
                     capability >= 80 ? "take bfloat16 and half" : "of compute capability 7.0 take half",
                     to_string(precision));
}

void check_shapes(const AttentionShape& shape, const PackedSequences& sequences, std::size_t rows,
                  std::size_t qkv_columns, std::size_t out_columns) {
  const std::size_t samples = sequences.sample_ids.size();
  require(
      shape.key_value_heads > 0 && shape.heads % shape.key_value_heads == 0,
      fmt::format("attention: {} heads are not a multiple of {} key-value heads", shape.heads, shape.key_value_heads));
  require(qkv_columns == shape.columns(),
          fmt::format("attention: qkv has {} columns, ({} + 2 * {}) heads of {} need {}", qkv_columns, shape.heads,
                      shape.key_value_heads, shape.head_size, shape.columns()));
  require(out_columns == shape.heads * shape.head_size,
          fmt::format("attention: out has {} columns, {} heads of {} need {}", out_columns, shape.heads,
                      shape.head_size, shape.heads * shape.head_size));
  require(sequences.starts.size() == samples + 1, fmt::format("attention: {} sequence starts for {} samples, not {}",
                                                              sequences.starts.size(), samples, samples + 1));
  require(sequences.longest <= rows,
          fmt::format("attention: the longest sequence has {} rows, the batch {}", sequences.longest, rows));
}

}  // namespace mylos::attention
