#include "core/base/error.hpp"
#include "core/kernels/cuda/cudnn_attention_graph.hpp"
#include "core/numeric.hpp"
#include "tests/core/kernels/cudnn_stand_in/attention_stand_in.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

/// Replaces core/kernels/cuda/cudnn_attention_graph.cpp: computes attention naively in double from the same arrays,
/// each sequence found by its offsets and its length.
namespace mylos::stand_in {

AttentionState& attention_state() {
  static AttentionState state;
  return state;
}

}  // namespace mylos::stand_in

namespace mylos::cudnn {
namespace {

void note(bool is_right, const char* mistake) {
  stand_in::AttentionState& state = stand_in::attention_state();
  if (!is_right && state.mistake.empty()) state.mistake = mistake;
}

std::size_t as_size(std::int64_t offset) { return static_cast<std::size_t>(offset); }

/// One head of one sequence.
template <class T>
class Head {
 public:
  Head(const AttentionKey& key, const AttentionArrays& arrays, std::size_t sequence, std::size_t head)
      : key_(key),
        arrays_(arrays),
        head_(head),
        key_head_(head / (key.heads / key.key_value_heads)),
        sequence_(sequence),
        qkv_(as_size(arrays.qkv_offsets[sequence])),
        out_(as_size(arrays.out_offsets[sequence])),
        length_(static_cast<std::size_t>(arrays.lengths[sequence])) {}

  void forward() const;
  void backward(std::vector<double>& dkeys, std::vector<double>& dvalues) const;

  std::size_t at_query(std::size_t row) const { return qkv_ + row * key_.columns() + head_ * key_.head_size; }
  std::size_t at_key(std::size_t row) const { return qkv_ + row * key_.columns() + key_head_ * key_.head_size; }

 private:
  static double read(const void* array, std::size_t i) {
    return static_cast<double>(float(static_cast<const T*>(array)[i]));
  }
  static void write(void* array, std::size_t i, double value) {
    static_cast<T*>(array)[i] = T(static_cast<float>(value));
  }

  std::size_t at_out(std::size_t row) const { return out_ + (row * key_.heads + head_) * key_.head_size; }
  float& statistic(std::size_t row) const {
    const std::size_t at = key_.has_packed_statistics
                               ? as_size(arrays_.statistics_offsets[sequence_]) + row * key_.heads + head_
                               : (sequence_ * key_.heads + head_) * key_.longest + row;
    return arrays_.statistics[at];
  }
  std::size_t seen(std::size_t row) const { return key_.causal ? row + 1 : length_; }
  std::size_t first(std::size_t row) const {
    const auto window = static_cast<std::size_t>(key_.window);
    return window > 0 && row + 1 > window ? row + 1 - window : 0;
  }
  double score(std::size_t row, std::size_t column) const {
    double sum = 0.0;
    for (std::size_t d = 0; d < key_.head_size; ++d) {
      sum += read(arrays_.query, at_query(row) + d) * read(arrays_.key, at_key(column) + d);
    }
    return static_cast<double>(key_.scale) * sum;
  }

  const AttentionKey& key_;
  const AttentionArrays& arrays_;
  std::size_t head_, key_head_, sequence_, qkv_, out_, length_;
};

template <class T>
void Head<T>::forward() const {
  for (std::size_t i = 0; i < length_; ++i) {
    double sum = 0.0;
    for (std::size_t j = first(i); j < seen(i); ++j) sum += std::exp(score(i, j));
    statistic(i) = static_cast<float>(std::log(sum));
    for (std::size_t d = 0; d < key_.head_size; ++d) {
      double value = 0.0;
      for (std::size_t j = first(i); j < seen(i); ++j)
        value += std::exp(score(i, j)) / sum * read(arrays_.value, at_key(j) + d);
      write(arrays_.out, at_out(i) + d, value);
    }
  }
}

template <class T>
void Head<T>::backward(std::vector<double>& dkeys, std::vector<double>& dvalues) const {
  const std::size_t size = key_.head_size;
  for (std::size_t i = 0; i < length_; ++i) {
    std::vector<double> dquery(size);
    double row_sum = 0.0;
    for (std::size_t d = 0; d < size; ++d)
      row_sum += read(arrays_.dout, at_out(i) + d) * read(arrays_.out, at_out(i) + d);
    for (std::size_t j = first(i); j < seen(i); ++j) {
      const double p = std::exp(score(i, j) - static_cast<double>(statistic(i)));
      double dp = 0.0;
      for (std::size_t d = 0; d < size; ++d) {
        dp += read(arrays_.dout, at_out(i) + d) * read(arrays_.value, at_key(j) + d);
        dvalues[at_key(j) + d] += p * read(arrays_.dout, at_out(i) + d);
      }
      const double dscore = static_cast<double>(key_.scale) * p * (dp - row_sum);
      for (std::size_t d = 0; d < size; ++d) {
        dquery[d] += dscore * read(arrays_.key, at_key(j) + d);
        dkeys[at_key(j) + d] += dscore * read(arrays_.query, at_query(i) + d);
      }
    }
    for (std::size_t d = 0; d < size; ++d) write(arrays_.dquery, at_query(i) + d, dquery[d]);
  }
}

/// Calls use(sequence, head) for all heads of `heads` of the sequences with rows.
template <class Use>
void for_each_head(const AttentionKey& key, const AttentionArrays& arrays, std::size_t heads, const Use& use) {
  for (std::size_t sequence = 0; sequence < key.sequences; ++sequence) {
    for (std::size_t head = 0; head < heads && arrays.lengths[sequence] > 0; ++head) use(sequence, head);
  }
}

template <class T>
void compute(const AttentionKey& key, const AttentionArrays& arrays) {
  if (key.pass == AttentionPass::forward) {
    for_each_head(key, arrays, key.heads,
                  [&](std::size_t sequence, std::size_t head) { Head<T>(key, arrays, sequence, head).forward(); });
    return;
  }
  // Beyond the last row of qkv there is less than a row.
  const std::size_t elements = as_size(arrays.qkv_offsets[key.sequences]) + key.columns();
  std::vector<double> dkeys(elements), dvalues(elements);
  for_each_head(key, arrays, key.heads, [&](std::size_t sequence, std::size_t head) {
    Head<T>(key, arrays, sequence, head).backward(dkeys, dvalues);
  });
  const std::size_t group = key.heads / key.key_value_heads;
  for_each_head(key, arrays, key.key_value_heads, [&](std::size_t sequence, std::size_t head) {
    const Head<T> first(key, arrays, sequence, head * group);
    for (std::size_t row = 0; row < static_cast<std::size_t>(arrays.lengths[sequence]); ++row) {
      for (std::size_t d = 0; d < key.head_size; ++d) {
        const std::size_t at = first.at_key(row) + d;
        static_cast<T*>(arrays.dkey)[at] = T(static_cast<float>(dkeys[at]));
        static_cast<T*>(arrays.dvalue)[at] = T(static_cast<float>(dvalues[at]));
      }
    }
  });
}

void check(const AttentionKey& key, const AttentionArrays& arrays) {
  for (std::size_t i = 0; i < key.sequences; ++i) {
    const std::int64_t length = arrays.lengths[i];
    note(length >= 0 && length <= static_cast<std::int64_t>(key.longest), "a length beyond the graph's bound");
    const auto follows = [&](const std::int64_t* offsets, std::size_t row) {
      return offsets[0] == 0 && offsets[i + 1] - offsets[i] == length * static_cast<std::int64_t>(row);
    };
    note(follows(arrays.qkv_offsets, key.columns()), "offsets of qkv");
    note(follows(arrays.out_offsets, key.heads * key.head_size), "offsets of out");
    note(follows(arrays.statistics_offsets, key.heads), "offsets of statistics");
  }
}

class StandInGraph final : public AttentionGraph {
 public:
  explicit StandInGraph(const AttentionKey& key) : key_(key), workspace_(stand_in::attention_state().workspace) {}

  std::size_t workspace_bytes() const override { return workspace_; }

  void run(Handle* handle, const AttentionArrays& arrays, void* workspace) override {
    stand_in::AttentionState& state = stand_in::attention_state();
    if (!state.failure.empty()) fail(state.failure);
    note(handle != nullptr, "no handle");
    note(reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0, "misaligned workspace");
    std::memset(workspace, 0xFF, workspace_);
    check(key_, arrays);
    if (key_.type == DataType::half) {
      compute<half>(key_, arrays);
    } else {
      compute<bfloat16>(key_, arrays);
    }
    ++(key_.pass == AttentionPass::forward ? state.forward : state.backward);
  }

 private:
  AttentionKey key_;
  std::size_t workspace_;
};

}  // namespace

std::unique_ptr<AttentionGraph> make_attention_graph(Handle* handle, const AttentionKey& key) {
  stand_in::AttentionState& state = stand_in::attention_state();
  if (!state.refusal.empty()) fail(state.refusal);
  note(handle != nullptr, "no handle");
  state.made.push_back(key);
  return std::make_unique<StandInGraph>(key);
}

}  // namespace mylos::cudnn
