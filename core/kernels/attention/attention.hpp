#pragma once

#include "core/device.hpp"
#include "core/kernels/attention/attention_kernel.hpp"
#include "core/kernels/dropout.hpp"
#include "core/kernels/scratch.hpp"
#include "core/numeric.hpp"
#include "core/random.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

/// Fused softmax attention over packed sequences, forward and backward; the score matrix is never stored. out =
/// dropout(softmax(scale q k^T)) v within each sequence (Vaswani et al. 2017; blocks after Dao et al. 2022).
/// Deterministic, except cuDNN's backward pass: each output element is summed by one team in a fixed order.
namespace mylos {

struct BatchShape;

/// Returns the reason why this build cannot run `kernel` with this element type; empty if it can.
std::string attention_obstacle(AttentionKernel kernel, Precision precision);
/// The same with this head size on this machine: a library is loaded to find out.
std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size);
/// The same on a device of this architecture.
std::string attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size,
                               const GpuArchitecture& device);
/// The same in any build, with every library: for plans, which need no device.
std::string planned_attention_obstacle(AttentionKernel kernel, Precision precision, std::size_t head_size,
                                       const GpuArchitecture& device);

/// More than any sequence has rows, and small enough that adding the number of a row does not overflow.
inline constexpr int no_window = 1 << 30;

/// Which keys a query sees. Both are numbered by their rows in the sequence.
struct AttentionMask {
  bool causal = false;
  int window = no_window;

  /// Returns the first key that a query sees.
  KOKKOS_INLINE_FUNCTION int first_key(int query) const { return query < window ? 0 : query - window + 1; }
  /// Returns the end of the queries that see a key.
  KOKKOS_INLINE_FUNCTION int end_of_queries(int key, int length) const {
    return key + window < length ? key + window : length;
  }
  KOKKOS_INLINE_FUNCTION bool hides(int key, int query) const {
    // A key after the query is as far before it as a large unsigned number says.
    return causal && static_cast<unsigned>(query - key) >= static_cast<unsigned>(window);
  }
  /// Returns whether any of `keys` keys from `key` on is hidden from any of `queries` queries from `query` on.
  KOKKOS_INLINE_FUNCTION bool hides_any(int key, int keys, int query, int queries) const {
    return causal && (key + keys > query + 1 || key + window < query + queries);
  }
};

/// The score of a masked key, and the maximum before the first key. Finite, because a block may hide all its keys from
/// a row that sees later ones: their probabilities of 1 become 0 with the first key that it sees. A power of two, so
/// that its product with a scale is exact: a fused multiply-add of that product and its negative, the score of a masked
/// key less the maximum of masked keys, is 0.
inline constexpr float hidden_score = -0x1p100f;

struct AttentionShape {
  std::size_t heads = 0;            ///< A, the number of query heads
  std::size_t key_value_heads = 0;  ///< KV, divides A: the query heads of a group use the same keys and values
  std::size_t head_size = 0;        ///< D
  float scale = 1.0f;               ///< factor of the scores, 1/sqrt(D)
  bool causal = false;              ///< a row attends only to itself and earlier rows
  int window = no_window;           ///< of a causal mask: a row attends to so many rows at most, with its own
  AttentionKernel kernel = AttentionKernel::portable;

  std::size_t columns() const { return (heads + 2 * key_value_heads) * head_size; }
  KOKKOS_INLINE_FUNCTION AttentionMask mask() const { return {causal, window}; }
};

/// The sequences of a packed batch.
struct PackedSequences {
  ConstVector<std::size_t> starts;        ///< (S+1) first row of each sequence; the last is T
  ConstVector<std::uint32_t> sample_ids;  ///< (S) position in the global batch, for dropout
  std::size_t longest = 0;                ///< rows of the longest sequence
  /// `starts` on the host, to compute the work of a launch; may be empty.
  std::span<const std::size_t> host_starts = {};
};

/// out (T, A D) = attention of qkv (T, (A + 2 KV) D: query heads, key heads, value heads). log_sum_exp (A, T) of the
/// scaled scores is saved for the backward pass of the same kernel; cuDNN's writes it as (T, A).
template <class T>
void attention_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                       const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                       const Matrix<float>& log_sum_exp);

/// Maximum rows per tile in the portable backward pass. Longer sequences are cut into tiles, which are distributed over
/// teams and accumulated in a float array.
inline constexpr int longest_attention_tile = 512;

/// dqkv (T, (A + 2 KV) D) = gradient of qkv from dout (T, A D). `row_sums` (A, T) is workspace for the sums of dout *
/// out. `partial_sums` (T, (A + 2 KV) D) is workspace for bfloat16 and half sequences of more than
/// `longest_attention_tile` rows; float needs none. If it is empty, each bfloat16 or half sequence is processed as one
/// tile of any length. Only the portable kernel uses it, and cuDNN's uses neither.
template <class T>
void attention_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                        const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                        const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv,
                        const Matrix<float>& row_sums, const Matrix<float>& partial_sums = {});

/// Makes what the kernel of `shape` keeps for passes over these batches: the graphs of cuDNN. Other kernels keep
/// nothing, and `batches` is not called. Errors: those of the passes.
template <class T>
void prepare_attention(const ExecutionSpace& space, const AttentionShape& shape,
                       const std::function<std::vector<BatchShape>()>& batches, bool with_backward);

/// Upper bounds in bytes for the scratch memory of the passes on elements of type T, for up to `samples` sequences of
/// up to `longest` rows. The passes do not run at the same time, so training needs the larger of the two.
/// `has_partial_sums` is true if the elements are floats or the backward pass gets `partial_sums`. `dropped_rows` is
/// the number of rows of all sequences if there is dropout, which only passes on tensor cores draw into scratch. Those
/// of cuDNN are estimates (cudnn_attention_sizes.hpp).
template <class T = bfloat16>
std::size_t attention_forward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                      const TeamProcessor& processor, std::size_t dropped_rows = 0);
template <class T = bfloat16>
std::size_t attention_backward_scratch(const AttentionShape& shape, std::size_t samples, std::size_t longest,
                                       const TeamProcessor& processor, bool has_partial_sums = true,
                                       std::size_t dropped_rows = 0);

}  // namespace mylos
