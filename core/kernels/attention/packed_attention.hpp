#pragma once

#include "core/kernels/attention/attention.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace mylos {

/// The arrays of both passes of one layer over packed sequences of some lengths, in uninitialized memory.
template <class T>
struct PackedAttention {
  AttentionShape shape;
  PackedSequences sequences;
  DropoutKey dropout = {};
  Matrix<T> qkv, out, dout, dqkv;
  Matrix<float> log_sum_exp, row_sums;

  /// `label` is that of the allocations. `lengths` are the rows of each sequence.
  PackedAttention(const std::string& label, const AttentionShape& of, std::span<const std::size_t> lengths)
      : shape(of) {
    const std::size_t samples = lengths.size(), rows = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    std::vector<std::size_t> starts(samples + 1, 0);
    std::partial_sum(lengths.begin(), lengths.end(), starts.begin() + 1);
    const Vector<std::size_t> device_starts(label, samples + 1);
    Kokkos::deep_copy(device_starts, HostVector<std::size_t>(starts.data(), samples + 1));
    const Vector<std::uint32_t> ids(label, samples);
    sequences = {device_starts, ids, lengths.empty() ? 0 : *std::ranges::max_element(lengths)};
    const auto uninitialized = Kokkos::view_alloc(label, Kokkos::WithoutInitializing);
    qkv = Matrix<T>(uninitialized, rows, shape.columns());
    dqkv = Matrix<T>(uninitialized, rows, shape.columns());
    out = Matrix<T>(uninitialized, rows, shape.heads * shape.head_size);
    dout = Matrix<T>(uninitialized, rows, shape.heads * shape.head_size);
    log_sum_exp = Matrix<float>(uninitialized, shape.heads, rows);
    row_sums = Matrix<float>(uninitialized, shape.heads, rows);
  }

  /// Computes the forward and the backward pass.
  void compute(const ExecutionSpace& space) const {
    attention_forward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp);
    attention_backward<T>(space, shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums);
  }
};

}  // namespace mylos
