#pragma once

#include "nn/llama/llama.hpp"
#include "tests/support/engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Llama written naively in double, sequence by sequence: the oracle of layers and of the whole model.
namespace mylos::tests {

struct LlamaTwinBatch {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, positions, labels;

  /// Sequences of these lengths of tokens that look random; a label is the token that follows, none where one ends.
  LlamaTwinBatch(const nn::LlamaShape& shape, std::vector<std::size_t> sequence_lengths);

  std::size_t rows() const { return tokens.size(); }
  /// The packed batch of sequences [begin, end).
  void fill(std::size_t begin, std::size_t end, Batch& batch) const;
  BatchShape shape() const;
};

class LlamaTwin {
 public:
  /// Takes the engine's values as they are.
  LlamaTwin(const nn::LlamaShape& shape, const Engine& engine, const LlamaTwinBatch& batch);

  /// Row `row` of the table, to be varied.
  Values& parameter(std::size_t row) { return parameters_[row]; }

  Values logits() const;  ///< (T, V)
  Values losses() const;  ///< (S)

 private:
  const Values& named(const std::string& name) const { return parameters_[table_.find(name)]; }
  Values linear(const std::string& name, const Values& x, std::size_t in) const;
  Values norm(const std::string& name, const Values& x) const;
  /// Turns each head of (T, heads D) by its row's position.
  Values rotated(const Values& x, std::size_t heads) const;
  Values attention(const std::string& name, const Values& x) const;
  Values feed_forward(const std::string& name, const Values& x) const;
  double frequency(std::size_t pair) const;

  nn::LlamaShape shape_;
  const ParameterTable& table_;
  const LlamaTwinBatch& batch_;
  std::vector<Values> parameters_;
};

}  // namespace mylos::tests
