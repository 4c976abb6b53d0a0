#pragma once

#include "families/bert/bert_layer.hpp"

/// The sum of word, position and token-type embeddings, followed by LayerNorm and dropout.
namespace mylos::families {

template <class T>
class BertEmbeddings {
 public:
  struct Activations {
    LayerNormSaved<T> norm;
    Matrix<T> output;  ///< (T, H)
  };

  /// Adds the embedding and LayerNorm tensors as the unit "embeddings".
  static void add_rows(ParameterTable::Builder& builder, const BertShape& shape);
  BertEmbeddings(const ParameterTable& table, const BertShape& shape);

  static Activations take_activations(Arena& arena, const BertShape& shape, std::size_t rows);

  /// Computes saved.output (T, H) from the batch's tokens, segments and positions.
  void forward(const nn::Pass& pass, const Batch& batch, float dropout, const Activations& saved) const;
  /// Adds the gradients of the tables, given doutput (T, H), which is overwritten.
  void backward(const nn::Pass& pass, const Batch& batch, float dropout, const Activations& saved,
                const Matrix<T>& doutput, const Vector<float>& column_sums) const;

 private:
  BertShape shape_;
  std::size_t words_, positions_, segments_;
  LayerNormTensors norm_;
};

}  // namespace mylos::families
