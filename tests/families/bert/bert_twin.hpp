#pragma once

#include "families/bert/bert_layer.hpp"
#include "tests/support/engine.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// A straightforward implementation of BERT in double precision, one sequence at a time, with dropout from the same
/// counters: the reference for layers and for the whole model.
namespace mylos::tests {

struct TwinBatch {
  std::vector<std::size_t> lengths;
  std::vector<std::uint32_t> ids;  ///< position of each sequence in the global batch
  std::vector<std::int32_t> tokens, segments, positions, starts, ends;

  /// Creates sequences of these lengths with pseudo-random tokens, answers and ids. Every fourth answer lies outside.
  TwinBatch(const families::BertShape& shape, std::vector<std::size_t> sequence_lengths);

  std::size_t rows() const { return tokens.size(); }
  /// Packs sequences [begin, end) into a batch.
  void fill(std::size_t begin, std::size_t end, Batch& batch) const;
  BatchShape shape() const;
};

class BertTwin {
 public:
  /// Copies the engine's values, seed and step.
  BertTwin(const families::BertShape& shape, const Engine& engine, const TwinBatch& batch, bool dropout);

  /// Returns tensor `row` of the table, to be perturbed.
  Values& parameter(std::size_t row) { return parameters_[row]; }

  Values embeddings() const;                               ///< (T, H)
  Values layer(std::size_t index, const Values& x) const;  ///< (T, H) from (T, H)
  Values logits() const;                                   ///< (T, 2)
  Values losses() const;                                   ///< (S)

 private:
  /// Returns the factor of an element: 0 or 1 / (1 - p).
  double kept(std::uint32_t site, float probability, std::size_t sequence, std::size_t position, std::size_t lane,
              std::size_t column) const;
  void drop(std::uint32_t site, float probability, Values& x) const;
  const Values& named(const std::string& name) const;
  Values linear(const std::string& name, const Values& x, std::size_t in, std::size_t out) const;
  Values norm(const std::string& name, const Values& z) const;
  Values attention(std::size_t index, const Values& x) const;

  families::BertShape shape_;
  const ParameterTable& table_;
  const TwinBatch& batch_;
  std::uint64_t seed_, step_;
  bool dropout_;
  std::vector<Values> parameters_;
};

}  // namespace mylos::tests
