#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/work.hpp"

/// What the passes of attention do, with elements of `element` bytes. Where the lengths of the sequences are not known
/// on the host, the work is not known.
namespace mylos::attention {

/// Two products of scores, and the softmax.
std::optional<Work> forward_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
/// Five products.
std::optional<Work> backward_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
/// The sums of dout * out of `rows` rows.
Work row_sums_work(const AttentionShape& shape, std::size_t rows, std::size_t element);
/// The backward pass on tensor cores: each of two passes makes the scores and their gradients, so that the one over
/// queries has three products and the one over keys four.
std::optional<Work> query_pass_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
std::optional<Work> key_pass_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);

}  // namespace mylos::attention
