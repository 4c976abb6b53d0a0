#include "core/kernels/attention.hpp"

#include "core/base/error.hpp"
#include "core/kernels/attention_blocks.hpp"
#include "core/kernels/cudnn_attention.hpp"
#include "core/kernels/tensor_core_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mylos {
namespace {

std::string build_obstacle(AttentionKernel kernel, Precision precision) {
  if (kernel == AttentionKernel::tensor_cores) {
    return attention::tensor_core_obstacle(attention::tensor_core_capability, precision);
  }
  if (!attention::has_cudnn_attention) {
    return "this build has no attention by cuDNN; it needs a build for GPUs with MYLOS_ENABLE_CUDNN";
  }
  return precision == Precision::float32 ? "attention by cuDNN takes bfloat16 and half, not float" : "";
}

std::string head_size_obstacle(AttentionKernel kernel, std::size_t head_size) {
  if (kernel == AttentionKernel::cudnn) {
    if (head_size % 8 == 0 && head_size >= 8 && head_size <= 128) return {};
    return fmt::format("cuDNN takes heads of 8, 16, ... 128 elements, not of {}", head_size);
  }
  if (head_size == 32 || head_size == 64 || head_size == 128) return {};
  return fmt::format("tensor cores take heads of 32, 64 or 128 elements, not of {}", head_size);
}

}  // namespace

std::string_view to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::tensor_cores:
      return "tensor-cores";
    case AttentionKernel::cudnn:
      return "cudnn";
    case AttentionKernel::portable:
      break;
  }
  return "portable";
}

std::optional<AttentionKernel> find_attention_kernel(std::string_view name) {
  for (const AttentionKernel kernel : attention_kernels) {
    if (to_string(kernel) == name) return kernel;
  }
  return std::nullopt;
}

std::string attention_obstacle(AttentionKernel kernel, Precision precision) {
  return kernel == AttentionKernel::portable ? std::string() : build_obstacle(kernel, precision);
}

std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size) {
  std::string obstacle = attention_obstacle(kernel, precision);
  if (kernel == AttentionKernel::portable || !obstacle.empty()) return obstacle;
  obstacle = head_size_obstacle(kernel, head_size);
  if (kernel != AttentionKernel::cudnn || !obstacle.empty()) return obstacle;
  return attention::cudnn_attention_obstacle();
}

std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size, int capability) {
  std::string obstacle = attention_obstacle(kernel, precision, head_size);
  if (kernel != AttentionKernel::cudnn || !obstacle.empty()) return obstacle;
  return attention::cudnn_attention_obstacle(capability);
}

AttentionKernel planned_attention_kernel(Precision precision, std::size_t head_size, int capability) {
  // The compute capabilities of GPUs in bench/results on which losses with this kernel agreed with those of a CPU.
  constexpr std::array tensor_cores_validated = {90};
  constexpr std::array<int, 0> cudnn_validated = {};
  static_assert(cudnn_validated.empty(), "measure both kernels, and consider dropout and determinism");
  const bool is_validated = std::ranges::find(tensor_cores_validated, capability) != tensor_cores_validated.end();
  const AttentionKernel fastest = AttentionKernel::tensor_cores;
  const bool is_supported = precision != Precision::float32 && head_size_obstacle(fastest, head_size).empty();
  return is_validated && is_supported ? fastest : AttentionKernel::portable;
}

AttentionKernel fastest_attention(Precision precision, std::size_t head_size, int capability) {
  const AttentionKernel fastest = planned_attention_kernel(precision, head_size, capability);
  // A build for 7.0 runs on later GPUs, but with other instructions than those that were validated there.
  const bool has_instructions_of_device = attention::tensor_core_capability == (capability < 80 ? 70 : 80);
  const bool can_run = has_instructions_of_device && attention_obstacle(fastest, precision, head_size).empty();
  return can_run ? fastest : AttentionKernel::portable;
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
