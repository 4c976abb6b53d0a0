#pragma once

#include "nn/layers/linear.hpp"

/// One layer of a Llama-type decoder without biases: x += attention(RMSNorm(x)), x += SwiGLU(RMSNorm(x)). Groups of
/// query heads use the same key and value head (Ainslie et al. 2023), and attention is causal.
namespace mylos::small_models {

struct DecoderShape {
  std::size_t vocabulary = 0;  ///< V
  std::size_t hidden = 48;     ///< H
  std::size_t layers = 2;      ///< L
  std::size_t heads = 4;
  std::size_t key_value_heads = 2;
  std::size_t feed_forward = 96;  ///< F
  std::size_t positions = 32;     ///< the longest sequence
  float epsilon = 1e-5f;
  float initializer_range = 0.08f;

  std::size_t head_size() const { return hidden / heads; }
  /// Returns the number of columns of queries, keys and values together.
  std::size_t projected() const { return (heads + 2 * key_value_heads) * head_size(); }
};

struct DecoderLayerActivations {
  Vector<float> attention_inverse;  ///< (T)
  Matrix<float> attention_input;    ///< (T, H) normalised
  Matrix<float> qkv;                ///< (T, (A + 2 KV) D)
  Matrix<float> context;            ///< (T, H)
  Matrix<float> log_sum_exp;        ///< (A, T)
  Matrix<float> middle;             ///< (T, H) after attention
  Vector<float> mlp_inverse;        ///< (T)
  Matrix<float> mlp_input;          ///< (T, H) normalised
  Matrix<float> gate_up;            ///< (T, 2F)
  Matrix<float> activation;         ///< (T, F)
  Matrix<float> output;             ///< (T, H)
};

struct DecoderLayerWorkspace {
  Matrix<float> dcontext, dnormal;  ///< (T, H)
  Matrix<float> dqkv;               ///< (T, (A + 2 KV) D)
  Matrix<float> dgate_up;           ///< (T, 2F)
  Matrix<float> dactivation;        ///< (T, F)
  Matrix<float> row_sums;           ///< (A, T)
  Vector<float> column_sums;        ///< workspace for H columns
};

class DecoderLayer {
 public:
  /// Adds the parameter tensors of layer `index` as a unit. The constructor looks them up.
  static void add_rows(ParameterTable::Builder& builder, const DecoderShape& shape, std::size_t index);
  DecoderLayer(const ParameterTable& table, const DecoderShape& shape, std::size_t index);

  /// With `before`, the activations of the previous layer, only the output is allocated; the other arrays are reused.
  static DecoderLayerActivations take_activations(Arena& arena, const DecoderShape& shape, std::size_t rows,
                                                  const DecoderLayerActivations* before = nullptr);
  static DecoderLayerWorkspace take_workspace(Arena& arena, const DecoderShape& shape, std::size_t rows);

  /// Computes saved.output (T, H) from input (T, H).
  void forward(const nn::Pass& pass, const Batch& batch, const ConstMatrix<float>& input,
               const DecoderLayerActivations& saved) const;
  /// Converts dx (T, H) from the gradient of the output to that of the input. Adds parameter gradients.
  void backward(const nn::Pass& pass, const Batch& batch, const ConstMatrix<float>& input,
                const DecoderLayerActivations& saved, const DecoderLayerWorkspace& work, const Matrix<float>& dx) const;

 private:
  DecoderShape shape_;
  std::size_t attention_norm_, mlp_norm_;
  nn::Linear qkv_, attention_output_, gate_up_, down_;
};

}  // namespace mylos::small_models
