#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace mylos {

/// The implementation of attention.
enum class AttentionKernel {
  portable,      ///< runs on every Kokkos backend; sums of products in float
  tensor_cores,  ///< bfloat16 and half on GPUs from compute capability 8.0 on and on gfx90a and gfx942, half on 7.0;
                 ///< head sizes 32, 64 and 128
  cudnn,         ///< the library, from 8.0 on; bfloat16 and half; head sizes up to 128; no dropout
};

/// All kernels, those of every build first.
inline constexpr std::array attention_kernels = {AttentionKernel::portable, AttentionKernel::tensor_cores,
                                                 AttentionKernel::cudnn};

/// The name of the kernel: "portable", "tensor-cores" or "cudnn".
std::string_view to_string(AttentionKernel kernel);
/// Returns the kernel of this name; nullopt if there is none.
std::optional<AttentionKernel> find_attention_kernel(std::string_view name);

/// Returns whether the kernel supports dropout. That of cuDNN would draw other bits than the other kernels.
constexpr bool has_dropout(AttentionKernel kernel) { return kernel != AttentionKernel::cudnn; }
/// Returns whether the kernel gives the same bits in each run.
constexpr bool is_deterministic(AttentionKernel kernel) { return kernel != AttentionKernel::cudnn; }

}  // namespace mylos
