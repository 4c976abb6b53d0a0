#pragma once

#include "core/base/precision.hpp"
#include "core/kernels/attention/attention.hpp"

#include <string>

/// Attention's passes by cuDNN: the same as in core/kernels/attention/attention.hpp, for bfloat16 and half, head sizes
/// that are multiples of 8 up to 128, and 16-byte aligned arrays, without dropout. log_sum_exp is written and read as
/// (T, A). The backward pass adds to the gradient of queries in any order, so its bits differ from run to run.
namespace mylos::attention {

/// True if this build includes cuDNN's passes; otherwise the passes fail.
extern const bool has_cudnn_attention;

/// Returns the reason why cuDNN cannot be used on this machine, in one line that says what to change; empty if it can.
/// Loads the library at the first call.
std::string cudnn_attention_obstacle();
/// The same on a device of this architecture, for which it may be too old.
std::string cudnn_attention_obstacle(const GpuArchitecture& device);

/// Returns the reason why no version of cuDNN can be used on a device of this architecture; empty if one can. In every
/// build.
std::string cudnn_device_obstacle(const GpuArchitecture& device);

/// Makes the graphs of the passes over batches of `samples` sequences of up to `longest` rows.
void prepare_cudnn(const ExecutionSpace& space, const AttentionShape& shape, Precision precision, std::size_t samples,
                   std::size_t longest, bool with_backward);

template <class T>
void cudnn_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                   const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                   const Matrix<float>& log_sum_exp);

template <class T>
void cudnn_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                    const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                    const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv);

}  // namespace mylos::attention
