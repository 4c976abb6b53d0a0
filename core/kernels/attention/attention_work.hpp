#pragma once

#include "core/kernels/attention/attention.hpp"
#include "core/work.hpp"

/// Work of attention's passes, for elements of `element` bytes. nullopt if the host does not know the sequence lengths.
namespace mylos::attention {

/// Returns the mean number of keys that a row of a sequence of `length` rows sees, of whole sequences or on average.
double mean_visible_keys(const AttentionShape& shape, double length);

/// The forward pass: two products of scores, and the softmax.
std::optional<Work> forward_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
/// The backward pass: five products.
std::optional<Work> backward_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
/// The sums of dout * out for `rows` rows.
Work row_sums_work(const AttentionShape& shape, std::size_t rows, std::size_t element);
/// The backward pass on tensor cores has two passes, which both compute the scores and their gradients: three products
/// in the pass over queries and four in the pass over keys.
std::optional<Work> query_pass_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
std::optional<Work> key_pass_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element);
/// Returns the work of drawing dropout, whose bits are written once.
std::optional<Work> kept_pairs_work(const AttentionShape& shape, const PackedSequences& sequences);

}  // namespace mylos::attention
