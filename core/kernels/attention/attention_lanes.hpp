#pragma once

#include "core/kernels/attention/attention.hpp"

/// Attention in float on a host, with a query in each lane of the vector registers: a row of scores holds one key's
/// scores for a block of queries. Products then read keys and values where they are, maxima and sums need no
/// reduction over lanes, and gradients of keys and values are added where they belong.
namespace mylos::attention {

/// Whether a build has these passes.
inline constexpr bool computes_in_lanes = !kernels_in_teams;

/// Returns whether they compute heads of this size: multiples of the 16 rows and columns that are transposed at a time.
inline bool fits_lanes(std::size_t head_size) { return head_size % 16 == 0; }

/// Return the scratch memory of a thread in bytes, for parts of `side` queries of a sequence.
std::size_t forward_scratch_in_lanes(std::size_t head_size, int side);
std::size_t backward_scratch_in_lanes(std::size_t head_size, int side);

/// `attention_forward` without checks of arguments.
void forward_in_lanes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                      const DropoutKey& dropout, const ConstMatrix<float>& qkv, const Matrix<float>& out,
                      const Matrix<float>& log_sum_exp);

/// `attention_backward` without checks of arguments, given the row sums of dout * out.
void backward_in_lanes(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                       const DropoutKey& dropout, const ConstMatrix<float>& qkv, const ConstMatrix<float>& log_sum_exp,
                       const ConstMatrix<float>& dout, const ConstMatrix<float>& row_sums, const Matrix<float>& dqkv);

}  // namespace mylos::attention
