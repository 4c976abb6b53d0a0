#pragma once

#include "core/device.hpp"
#include "core/kernels/dropout.hpp"
#include "core/kernels/scratch.hpp"
#include "core/numeric.hpp"
#include "core/random.hpp"

#include <span>
#include <string>
#include <string_view>

/// Fused softmax attention over packed sequences, forward and backward; the score matrix is never stored.
/// out = dropout(softmax(scale q k^T)) v within each sequence (Vaswani et al. 2017; blocks after Dao et al. 2022).
/// Deterministic: every output element is summed by one team in a fixed order.
namespace mylos {

/// What computes it.
enum class AttentionKernel {
  portable,      ///< wherever Kokkos is; products in float
  tensor_cores,  ///< of GPUs, from compute capability 8.0 on: bfloat16 and half, heads of 32, 64 and 128
};

/// "portable" or "tensor-cores".
std::string_view to_string(AttentionKernel kernel);

/// Why this build cannot run `kernel` on elements of this type, or on heads of this size either; empty where it can.
std::string attention_obstacle(AttentionKernel kernel, Precision precision);
std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size);

struct AttentionShape {
  std::size_t heads = 0;            ///< A
  std::size_t key_value_heads = 0;  ///< KV, divides A: query heads of a group share keys and values
  std::size_t head_size = 0;        ///< D
  float scale = 1.0f;               ///< of the scores, 1/sqrt(D)
  bool causal = false;              ///< a row sees itself and earlier rows only
  AttentionKernel kernel = AttentionKernel::portable;

  std::size_t columns() const { return (heads + 2 * key_value_heads) * head_size; }
};

/// The sequences of a batch as attention sees them.
struct PackedSequences {
  ConstVector<std::size_t> starts;        ///< (S+1) first row of each; the last is T
  ConstVector<std::uint32_t> sample_ids;  ///< (S) place in the global batch, for dropout
  std::size_t longest = 0;                ///< rows of the longest
  /// `starts` on the host, from which the work of a launch is known; may be empty.
  std::span<const std::size_t> host_starts = {};
};

/// out (T, A D) = attention of qkv (T, (A + 2 KV) D: query heads, key heads, value heads).
/// log_sum_exp (A, T) of the scaled scores is kept for the backward pass.
template <class T>
void attention_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                       const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                       const Matrix<float>& log_sum_exp);

/// Rows of a sequence that the portable backward pass takes at once. Longer sequences are cut into tiles, which teams
/// share and which add up in an array of floats.
inline constexpr int longest_attention_tile = 512;

/// dqkv (T, (A + 2 KV) D) = gradient of qkv from dout (T, A D). `row_sums` (A, T) is workspace: sum of dout * out.
/// `partial_sums` (T, (A + 2 KV) D) is workspace for sequences of more than `longest_attention_tile` rows in bfloat16
/// and half; float needs none. Where it is empty, each sequence of these types is one tile, however long.
template <class T>
void attention_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                        const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                        const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                        const Matrix<float>& row_sums, const Matrix<float>& partial_sums = {});

/// Bytes that the passes work in beside their arguments, at the most: for `samples` sequences of `longest` rows at the
/// most. They do not work at the same time, so that a training pass takes the larger of the two. `has_partial_sums`:
/// elements are floats, or the backward pass is given its array.
std::size_t attention_forward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                      const TeamProcessor& processor);
std::size_t attention_backward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                       const TeamProcessor& processor, bool has_partial_sums = true);

}  // namespace mylos
