#include "core/kernels/attention/attention.hpp"

#include "core/base/error.hpp"
#include "core/kernels/attention/attention_blocks.hpp"
#include "core/kernels/attention/cudnn_attention.hpp"
#include "core/kernels/attention/tensor_core_attention.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

std::string cudnn_precision_obstacle(Precision precision) {
  return precision == Precision::float32 ? "attention by cuDNN takes bfloat16 and half, not float" : "";
}

std::string build_obstacle(AttentionKernel kernel, Precision precision) {
  if (kernel == AttentionKernel::tensor_cores) {
    return attention::tensor_core_obstacle(attention::tensor_core_architecture, precision);
  }
  if (!attention::has_cudnn_attention) {
    return "this build has no attention by cuDNN; it needs a build for GPUs with MYLOS_ENABLE_CUDNN";
  }
  return cudnn_precision_obstacle(precision);
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

std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size,
                               const GpuArchitecture& device) {
  std::string obstacle = attention_obstacle(kernel, precision, head_size);
  if (kernel != AttentionKernel::cudnn || !obstacle.empty()) return obstacle;
  return attention::cudnn_attention_obstacle(device);
}

std::string planned_attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size,
                                       const GpuArchitecture& device) {
  if (kernel == AttentionKernel::portable) return {};
  if (!device.is_gpu()) return "it needs a GPU";
  std::string obstacle = kernel == AttentionKernel::cudnn ? cudnn_precision_obstacle(precision)
                                                          : attention::tensor_core_obstacle(device, precision);
  if (obstacle.empty()) obstacle = head_size_obstacle(kernel, head_size);
  if (kernel != AttentionKernel::cudnn || !obstacle.empty()) return obstacle;
  return attention::cudnn_device_obstacle(device);
}

}  // namespace mylos

namespace mylos::attention {

std::string cudnn_device_obstacle(const GpuArchitecture& device) {
  if (device.is_nvidia(80)) return {};
  return fmt::format("attention by cuDNN needs a GPU of compute capability 8.0 or later, and this one {} {}",
                     device.is_amd() ? "is a" : "has", short_name(device));
}

std::string tensor_core_obstacle(const GpuArchitecture& architecture, Precision precision) {
  if (!architecture.is_gpu()) {
    return "this build has no kernels for tensor cores; they need a build for GPUs of AMD, or of compute capability "
           "7.0 or later";
  }
  if (architecture.multiplies(precision)) return {};
  const bool takes_both = architecture.multiplies(Precision::bfloat16);
  return fmt::format("tensor cores {}, not {}",
                     takes_both ? "take bfloat16 and half" : "of compute capability 7.0 take half",
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
  require(shape.window > 0 && shape.window <= no_window && (shape.causal || shape.window == no_window),
          fmt::format("attention: a window of {} rows {}; it needs a row or more, and a causal mask", shape.window,
                      shape.causal ? "with a causal mask" : "without a causal mask"));
  require(sequences.starts.size() == samples + 1, fmt::format("attention: {} sequence starts for {} samples, not {}",
                                                              sequences.starts.size(), samples, samples + 1));
  require(sequences.longest <= rows,
          fmt::format("attention: the longest sequence has {} rows, the batch {}", sequences.longest, rows));
}

}  // namespace mylos::attention
