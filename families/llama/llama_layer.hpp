#pragma once

#include "core/kernels/attention/cached_attention.hpp"
#include "core/kernels/norms/head_norm.hpp"
#include "core/kernels/norms/rms_norm.hpp"
#include "families/llama/llama_shape.hpp"
#include "nn/body.hpp"
#include "nn/layers/linear.hpp"

/// One layer of a Llama: x += attention(RMSNorm(x)), x += SwiGLU(RMSNorm(x)), without dropout. Attention is causal,
/// with grouped queries (Ainslie et al. 2023). Members of the family have biases, norms of heads, or a sliding window.
///
/// The residual sum x += y is fused with the next RMSNorm, which reads x. A layer therefore takes its input as two
/// arrays to be summed, and returns its result in the same form.
namespace mylos::families {

/// Inputs that all layers of a pass share.
struct LlamaTokens {
  const Batch& batch;
  ConstMatrix<float> rotary;  ///< (T, D), see rotary_table
};

/// Activations that a layer keeps for its backward pass: 2 H + (2 A + 2 KV) D + 2 F elements and A + 2 floats per
/// token, and (A + KV) D elements more with norms of heads. The outputs of both norms and of SwiGLU are not kept,
/// because one elementwise kernel recomputes them.
template <class T>
struct LlamaLayerActivations {
  RmsNormSaved<T> attention_norm;  ///< its input (T, H) is the layer's input, the only array that Recompute::layer
                                   ///< keeps
  Matrix<T> qkv;                   ///< (T, (A + 2 KV) D) after rotation; recomputed under Recompute::attention
  Matrix<T> heads;    ///< (T, (A + KV) D) queries and keys before their norms, or empty; kept and recomputed as qkv
  Matrix<T> context;  ///< (T, A D)
  Matrix<float> log_sum_exp;  ///< (A, T)
  RmsNormSaved<T> mlp_norm;   ///< its input (T, H) is the residual sum after attention
  Matrix<T> gate_up;          ///< (T, 2F), overwritten with its gradient in the backward pass
};

/// Scratch memory for the forward pass; all layers use the same.
template <class T>
struct LlamaLayerScratch {
  Matrix<T> normal;      ///< (T, H)
  Matrix<T> activation;  ///< (T, F)
};

/// Scratch memory for the backward pass; all layers use the same, and so does the forward pass in training.
template <class T>
struct LlamaLayerWorkspace {
  Matrix<T> normal;            ///< (T, H), outputs of norms, then their gradients
  Matrix<T> dcontext;          ///< (T, A D), aliases `normal`
  Matrix<T> dactivation;       ///< (T, F)
  Matrix<T> dqkv;              ///< (T, (A + 2 KV) D), aliases `dactivation`
  Matrix<float> row_sums;      ///< (A, T)
  Matrix<float> partial_dqkv;  ///< (T, (A + 2 KV) D), empty if attention does not need it
  Vector<float> column_sums;   ///< for the columns of norms and biases; size: see column_sum_workspace

  LlamaLayerScratch<T> forward() const { return {normal, dactivation}; }
};

/// The cache that generation fills with a layer's keys and values.
template <class T>
struct LlamaCache {
  KeyValueCache<T> layer;
  const CachedRows& rows;
  /// Of cached_attention, for rows that attend to the tokens in the cache; there are then few, and few_rows_product
  /// multiplies them. Empty for rows that are a whole sequence.
  Vector<float> workspace;
};

/// Adds the tensor `name`.weight (size) of an RMSNorm, without weight decay.
void add_rms_norm_row(ParameterTable::Builder& builder, const std::string& name, std::size_t size);

template <class T>
class LlamaLayer {
 public:
  /// Adds the tensors of layer `index` as a unit of its own.
  static void add_rows(ParameterTable::Builder& builder, const LlamaShape& shape, std::size_t index);
  /// Looks up the tensors of layer `index`.
  LlamaLayer(const ParameterTable& table, const LlamaShape& shape, std::size_t index);

  /// Allocates a layer's activations. If `before` (the previous layer's activations) is given, only the arrays that
  /// `recompute` keeps are allocated; the others alias those of `before`.
  static LlamaLayerActivations<T> take_activations(Arena& arena, const LlamaShape& shape, std::size_t rows,
                                                   nn::Recompute recompute = nn::Recompute::none,
                                                   const LlamaLayerActivations<T>* before = nullptr);
  static LlamaLayerScratch<T> take_scratch(Arena& arena, const LlamaShape& shape, std::size_t rows);
  static LlamaLayerWorkspace<T> take_workspace(Arena& arena, const LlamaShape& shape, const BatchShape& batch);

  /// Returns the matrix products of all layers in a pass over T rows.
  static std::vector<GemmProduct> products(const LlamaShape& shape, std::size_t rows, ParameterStore::Purpose purpose);

  /// Returns the floating-point operations of layer `index`'s training pass over the batch: forward, recomputation if
  /// `recompute` asks for it, and backward, which has two products for each forward product. All samples are assumed to
  /// be equally long.
  static nn::UnitFlops training_flops(const LlamaShape& shape, std::size_t index, const BatchShape& batch,
                                      nn::Recompute recompute);

  /// Applies the layer to x = saved.attention_norm.input + residual (T, H), and stores x in saved.attention_norm.input.
  /// With an empty residual that array already holds x. The result is saved.mlp_norm.input + output (T, H). `output`
  /// may alias the layer's input. With a `cache`, a pass that generates; nothing can be restored after it.
  void forward(const nn::Pass& pass, const LlamaTokens& tokens, const ConstMatrix<T>& residual,
               const LlamaLayerActivations<T>& saved, const LlamaLayerScratch<T>& scratch, const Matrix<T>& output,
               const LlamaCache<T>* cache = nullptr) const;
  /// Recomputes the parts of `saved` that pass.recompute did not keep, bit for bit.
  void restore(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
               const LlamaLayerScratch<T>& scratch) const;
  /// Overwrites dx (T, H), the gradient of the result, with the gradient of the input, and adds the parameter
  /// gradients.
  void backward(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                const LlamaLayerWorkspace<T>& workspace, const Matrix<T>& dx) const;

 private:
  void multiply(const nn::Pass& pass, const nn::Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y,
                const LlamaCache<T>* cache) const;
  void project(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
               const Matrix<T>& normal, const LlamaCache<T>* cache = nullptr) const;
  void attend(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
              const LlamaCache<T>* cache) const;
  void forward_to_gate(const nn::Pass& pass, const LlamaTokens& tokens, const ConstMatrix<T>& residual,
                       const LlamaLayerActivations<T>& saved, const Matrix<T>& normal,
                       const LlamaCache<T>* cache = nullptr) const;
  void mlp_backward(const nn::Pass& pass, const LlamaLayerActivations<T>& saved,
                    const LlamaLayerWorkspace<T>& workspace, const Matrix<T>& dx) const;
  void attention_part_backward(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                               const LlamaLayerWorkspace<T>& workspace, const Matrix<T>& dx) const;
  RmsNormParameters<T> norm(const nn::Pass& pass, std::size_t row) const {
    return {pass.parameters.values<T>(row), shape_.rms_norm_epsilon};
  }

  HeadNorms<T> head_norms_of(const nn::Pass& pass) const {
    return {shape_.heads, shape_.key_value_heads, pass.parameters.values<T>(query_norm_),
            pass.parameters.values<T>(key_norm_), shape_.rms_norm_epsilon};
  }

  LlamaShape shape_;
  AttentionShape attention_;
  std::size_t attention_norm_, mlp_norm_;
  std::size_t query_norm_ = 0, key_norm_ = 0;  ///< if there are norms of heads
  nn::Linear query_key_value_, attention_output_, gate_up_, down_;
};

}  // namespace mylos::families
