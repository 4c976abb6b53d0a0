#pragma once

#include "families/llama/llama_body.hpp"
#include "tests/support/engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// A straightforward implementation of Llama in double precision, one sequence at a time: the reference for layers and
/// for the whole model.
namespace mylos::tests {

struct LlamaTwinBatch {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, positions, labels;

  /// Creates sequences of these lengths with pseudo-random tokens. A label is the next token; the last token has none.
  LlamaTwinBatch(const families::LlamaShape& shape, std::vector<std::size_t> sequence_lengths);

  std::size_t rows() const { return tokens.size(); }
  /// Packs sequences [begin, end) into a batch.
  void fill(std::size_t begin, std::size_t end, Batch& batch) const;
  BatchShape shape() const;
};

class LlamaTwin {
 public:
  /// Copies the engine's values.
  LlamaTwin(const families::LlamaShape& shape, const Engine& engine, const LlamaTwinBatch& batch);

  /// Returns tensor `row` of the table, to be perturbed.
  Values& parameter(std::size_t row) { return parameters_[row]; }

  Values logits() const;  ///< (T, V)
  Values losses() const;  ///< (S)

 private:
  const Values& named(const std::string& name) const { return parameters_[table_.find(name)]; }
  Values linear(const std::string& name, const Values& x, std::size_t in, bool has_bias = false) const;
  Values norm(const std::string& name, const Values& x) const;
  /// Applies the rotary embedding to each head of (T, heads D) at the position of its row.
  Values rotated(const Values& x, std::size_t heads) const;
  /// Returns the queries or keys: projected, normalised and rotated.
  Values heads_of(const std::string& name, const Values& x, std::size_t heads) const;
  Values attention(std::size_t layer, const std::string& name, const Values& x) const;
  Values feed_forward(const std::string& name, const Values& x) const;
  double frequency(std::size_t pair) const;

  families::LlamaShape shape_;
  const ParameterTable& table_;
  const LlamaTwinBatch& batch_;
  std::vector<Values> parameters_;
};

}  // namespace mylos::tests
