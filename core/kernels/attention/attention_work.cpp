#include "core/kernels/attention/attention_work.hpp"

#include "core/kernels/math.hpp"

#include <algorithm>

namespace mylos::attention {
namespace {

/// The work of a pass: operations per score, and the arrays read and written per row.
struct PassWork {
  double products = 0.0;  ///< per score, of D multiplications and additions each
  double score_flops = 0.0;
  std::size_t heads = 0;   ///< read and written per row
  std::size_t floats = 0;  ///< read and written per row and query head: log_sum_exp, row_sums
};

/// Returns the number of pairs of a query and a key visible to it.
std::size_t visible_pairs(const AttentionShape& shape, std::span<const std::size_t> starts) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const std::size_t length = starts[i + 1] - starts[i];
    const std::size_t most = std::min(length, static_cast<std::size_t>(shape.window));
    pairs += shape.causal ? most * (most + 1) / 2 + (length - most) * most : length * length;
  }
  return pairs;
}

std::optional<Work> pass_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element,
                              const PassWork& pass) {
  if (sequences.host_starts.empty()) return std::nullopt;
  const auto size = static_cast<double>(shape.head_size);
  const std::size_t rows = sequences.host_starts.back(),
                    scores = shape.heads * visible_pairs(shape, sequences.host_starts);
  return work_of(scores, 2.0 * pass.products * size + pass.score_flops, 0.0) +
         work_of(rows * pass.heads * shape.head_size, 0.0, static_cast<double>(element)) +
         work_of(rows * pass.floats * shape.heads, 0.0, sizeof(float));
}

/// Returns the number of heads in a row of qkv.
std::size_t all_heads(const AttentionShape& shape) { return shape.heads + 2 * shape.key_value_heads; }

}  // namespace

double mean_visible_keys(const AttentionShape& shape, double length) {
  if (!shape.causal) return length;
  const double window = shape.window;
  return length <= window ? (length + 1.0) / 2.0 : window - window * (window - 1.0) / (2.0 * length);
}

std::optional<Work> forward_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element) {
  const std::size_t heads = all_heads(shape) + shape.heads;  // qkv; out
  return pass_work(shape, sequences, element, {2.0, exp2_flops + 4.0, heads, 1});
}

std::optional<Work> backward_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element) {
  const std::size_t heads = all_heads(shape) + shape.heads + all_heads(shape);  // qkv, dout; dqkv
  return pass_work(shape, sequences, element, {5.0, exp2_flops + 5.0, heads, 2});
}

Work row_sums_work(const AttentionShape& shape, std::size_t rows, std::size_t element) {
  return work_of(rows * shape.heads * shape.head_size, 2.0, 2.0 * static_cast<double>(element)) +
         work_of(rows * shape.heads, 0.0, sizeof(float));
}

std::optional<Work> query_pass_work(const AttentionShape& shape, const PackedSequences& sequences,
                                    std::size_t element) {
  const std::size_t heads = all_heads(shape) + 2 * shape.heads + shape.heads;  // qkv, out, dout; dquery
  return pass_work(shape, sequences, element, {3.0, exp2_flops + 5.0, heads, 2});
}

std::optional<Work> key_pass_work(const AttentionShape& shape, const PackedSequences& sequences, std::size_t element) {
  const std::size_t heads = all_heads(shape) + shape.heads + 2 * shape.key_value_heads;  // qkv, dout; dkey, dvalue
  return pass_work(shape, sequences, element, {4.0, exp2_flops + 5.0, heads, 2});
}

std::optional<Work> kept_pairs_work(const AttentionShape& shape, const PackedSequences& sequences) {
  if (sequences.host_starts.empty()) return std::nullopt;
  return work_of(shape.heads * visible_pairs(shape, sequences.host_starts), 0.0, 1.0 / 8.0);
}

}  // namespace mylos::attention
