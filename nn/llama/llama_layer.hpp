#pragma once

#include "core/kernels/rms_norm.hpp"
#include "nn/layers/linear.hpp"
#include "nn/llama/llama_shape.hpp"

/// One layer of a Llama: x += attention(RMSNorm(x)), x += SwiGLU(RMSNorm(x)), without biases or dropout. Query heads
/// share key and value heads in groups (Ainslie et al. 2023), and a token sees itself and earlier ones only.
///
/// The sum x += y is made where the next RMSNorm reads x, in one kernel. A layer therefore begins with two arrays whose
/// sum is its input, and ends with two.
namespace mylos::nn {

/// What all layers of a pass read.
struct LlamaTokens {
  const Batch& batch;
  ConstMatrix<float> rotary;  ///< (T, D) as rotary_table makes it
};

/// What a layer keeps for its backward pass: 2 H + (2 A + 2 KV) D + 2 F elements and A + 2 floats a token. What one
/// pass over other kept values gives again is not kept: both norms' results and the activation after SwiGLU.
template <class T>
struct LlamaLayerActivations {
  RmsNormSaved<T> attention_norm;  ///< its input (T, H) is the layer's, all that Recompute::layer keeps
  Matrix<T> qkv;                   ///< (T, (A + 2 KV) D), turned; dropped by Recompute::attention
  Matrix<T> context;               ///< (T, A D)
  Matrix<float> log_sum_exp;       ///< (A, T)
  RmsNormSaved<T> mlp_norm;        ///< its input (T, H) is the sum after attention
  Matrix<T> gate_up;               ///< (T, 2F); the backward pass leaves its gradient there
};

/// What the forward pass of any layer works in.
template <class T>
struct LlamaLayerScratch {
  Matrix<T> normal;      ///< (T, H)
  Matrix<T> activation;  ///< (T, F)
};

/// What the backward pass of any layer works in, and the forward pass before it.
template <class T>
struct LlamaLayerWorkspace {
  Matrix<T> normal;            ///< (T, H) results of norms, then their gradients
  Matrix<T> dcontext;          ///< (T, A D), in the memory of `normal`
  Matrix<T> dactivation;       ///< (T, F)
  Matrix<T> dqkv;              ///< (T, (A + 2 KV) D), in the memory of `dactivation`
  Matrix<float> row_sums;      ///< (A, T)
  Matrix<float> partial_dqkv;  ///< (T, (A + 2 KV) D) where attention needs it
  Vector<float> column_sums;   ///< of H columns, as column_sum_workspace says

  LlamaLayerScratch<T> forward() const { return {normal, dactivation}; }
};

/// The rows of a layer in the table, for passes of another kind over the same parameters.
struct LlamaLayerRows {
  std::size_t unit, attention_norm, mlp_norm;
  Linear query_key_value, attention_output, gate_up, down;
};

/// Adds the row `name`.weight (size) of an RMSNorm, which is not decayed.
void add_rms_norm_row(ParameterTable::Builder& builder, const std::string& name, std::size_t size);

template <class T>
class LlamaLayer {
 public:
  /// Adds the rows of layer `index` as a unit of its own.
  static void add_rows(ParameterTable::Builder& builder, const LlamaShape& shape, std::size_t index);
  /// Finds them again.
  LlamaLayer(const ParameterTable& table, const LlamaShape& shape, std::size_t index);

  /// All of a layer's activations. With `before`, those of the layer before it, only what `recompute` keeps is new: the
  /// rest is where it stands in `before`, for layers take turns in it.
  static LlamaLayerActivations<T> take_activations(Arena& arena, const LlamaShape& shape, std::size_t rows,
                                                   Recompute recompute = Recompute::none,
                                                   const LlamaLayerActivations<T>* before = nullptr);
  static LlamaLayerScratch<T> take_scratch(Arena& arena, const LlamaShape& shape, std::size_t rows);
  static LlamaLayerWorkspace<T> take_workspace(Arena& arena, const LlamaShape& shape, const BatchShape& batch);

  /// What all layers of the model multiply in a pass over T rows.
  static std::vector<GemmProduct> products(const LlamaShape& shape, std::size_t rows, ParameterStore::Purpose purpose);

  /// Operations of one layer's training pass over the batch: forward, what is recomputed if this layer recomputes, and
  /// backward, which has two products for each one of the forward pass. Samples count as equally long.
  static double training_flops(const LlamaShape& shape, const BatchShape& batch, Recompute recompute);

  /// The layer applied to saved.attention_norm.input + residual (T, H), where the sum then stands; without a residual
  /// the sum is there already. The result is saved.mlp_norm.input + output (T, H). `output` may be the layer's input.
  void forward(const Pass& pass, const LlamaTokens& tokens, const ConstMatrix<T>& residual,
               const LlamaLayerActivations<T>& saved, const LlamaLayerScratch<T>& scratch,
               const Matrix<T>& output) const;
  /// Fills again what pass.recompute did not keep of `saved`, with the same bits.
  void restore(const Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
               const LlamaLayerScratch<T>& scratch) const;
  /// Turns dx (T, H) from the gradient of the result into that of the layer's input; parameter gradients are added.
  void backward(const Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                const LlamaLayerWorkspace<T>& workspace, const Matrix<T>& dx) const;

  /// The unit of its rows.
  std::size_t unit() const { return unit_; }
  LlamaLayerRows rows() const {
    return {unit_, attention_norm_, mlp_norm_, query_key_value_, attention_output_, gate_up_, down_};
  }

 private:
  void project(const Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
               const Matrix<T>& normal) const;
  void forward_to_gate(const Pass& pass, const LlamaTokens& tokens, const ConstMatrix<T>& residual,
                       const LlamaLayerActivations<T>& saved, const Matrix<T>& normal) const;
  void mlp_backward(const Pass& pass, const LlamaLayerActivations<T>& saved, const LlamaLayerWorkspace<T>& workspace,
                    const Matrix<T>& dx) const;
  void attention_part_backward(const Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                               const LlamaLayerWorkspace<T>& workspace, const Matrix<T>& dx) const;
  RmsNormParameters<T> norm(const Pass& pass, std::size_t row) const {
    return {pass.parameters.values<T>(row), shape_.rms_norm_epsilon};
  }

  LlamaShape shape_;
  std::size_t unit_, attention_norm_, mlp_norm_;
  Linear query_key_value_, attention_output_, gate_up_, down_;
};

}  // namespace mylos::nn
