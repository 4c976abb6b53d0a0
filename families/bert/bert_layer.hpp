#pragma once

#include "core/kernels/attention/attention.hpp"
#include "core/kernels/embedding.hpp"
#include "core/kernels/norms/layer_norm.hpp"
#include "families/bert/bert_shape.hpp"
#include "nn/body.hpp"
#include "nn/layers/linear.hpp"
#include "nn/model.hpp"

#include <string>

/// One layer of BERT's encoder (Devlin et al. 2019): attention and feed-forward, each followed by dropout + residual +
/// LayerNorm.
namespace mylos::families {

/// Indices of a LayerNorm's tensors in the parameter table.
struct LayerNormTensors {
  std::size_t weight = 0;
  std::size_t bias = 0;
};
void add_layer_norm_rows(ParameterTable::Builder& builder, const std::string& name, std::size_t size);
LayerNormTensors find_layer_norm(const ParameterTable& table, const std::string& name);
template <class T>
LayerNormParameters<T> layer_norm_parameters(const ParameterStore& store, const LayerNormTensors& rows, float epsilon);
/// Allocates the values that LayerNorm's backward pass needs for a (rows, columns) input.
template <class T>
LayerNormSaved<T> take_layer_norm_saved(Arena& arena, std::size_t rows, std::size_t columns);

/// Activations that a layer keeps for its backward pass: 7 H + F elements and A + 4 floats per token. The output of the
/// first LayerNorm and the output of GELU are not kept: an elementwise kernel recomputes the first, and GELU's backward
/// pass the second.
template <class T>
struct BertLayerActivations {
  Matrix<T> qkv;                     ///< (T, 3H), recomputed under Recompute::attention
  Matrix<T> context;                 ///< (T, H)
  Matrix<float> log_sum_exp;         ///< (A, T)
  LayerNormSaved<T> attention_norm;  ///< (T, H) and two floats per row
  Matrix<T> pre_activation;          ///< (T, F)
  LayerNormSaved<T> output_norm;     ///< (T, H) and two floats per row
  Matrix<T> output;                  ///< (T, H), the next layer's input; the only array that Recompute::layer keeps
};

/// Scratch memory for the forward pass; all layers use the same.
template <class T>
struct BertLayerScratch {
  Matrix<T> attention_output;  ///< (T, H)
  Matrix<T> activation;        ///< (T, F)
};

/// Scratch memory for the backward pass; all layers use the same, and so does the forward pass in training.
template <class T>
struct BertLayerWorkspace {
  Matrix<T> dresidual;        ///< (T, H)
  Matrix<T> dsublayer;        ///< (T, H)
  Matrix<T> dcontext;         ///< (T, H)
  Matrix<T> dfeed_forward;    ///< (T, F)
  Matrix<T> dqkv;             ///< (T, 3H), aliases dfeed_forward
  Matrix<float> row_sums;     ///< (A, T)
  Vector<float> column_sums;  ///< size: see column_sum_workspace

  /// Scratch for the forward pass. It aliases gradient buffers, which are dead while the forward pass's results are
  /// needed.
  BertLayerScratch<T> forward() const { return {dcontext, dfeed_forward}; }
};

/// Dropout probabilities; zero in prediction.
struct DropoutRates {
  float hidden = 0.0f;
  float attention = 0.0f;
};

template <class T>
class BertLayer {
 public:
  /// Adds the tensors of layer `index` as a unit of its own.
  static void add_rows(ParameterTable::Builder& builder, const BertShape& shape, std::size_t index);
  /// Looks up the tensors of layer `index`.
  BertLayer(const ParameterTable& table, const BertShape& shape, std::size_t index);

  /// Allocates a layer's activations. If `before` (the previous layer's activations) is given, only the arrays that
  /// `recompute` keeps are allocated; the others alias those of `before`.
  static BertLayerActivations<T> take_activations(Arena& arena, const BertShape& shape, std::size_t rows,
                                                  nn::Recompute recompute = nn::Recompute::none,
                                                  const BertLayerActivations<T>* before = nullptr);
  static BertLayerScratch<T> take_scratch(Arena& arena, const BertShape& shape, std::size_t rows);
  static BertLayerWorkspace<T> take_workspace(Arena& arena, const BertShape& shape, std::size_t rows);

  /// Returns the matrix products of all layers in a pass over T rows.
  static std::vector<GemmProduct> products(const BertShape& shape, std::size_t rows, ParameterStore::Purpose purpose);

  /// Returns the floating-point operations of one layer's training pass over the batch: forward, recomputation if
  /// `recompute` asks for it, and backward, which has two products for each forward product.
  static nn::UnitFlops training_flops(const BertShape& shape, const BatchShape& batch, nn::Recompute recompute);

  /// Returns the bytes of kernel scratch that a layer needs in addition to the arena.
  static std::size_t scratch_bytes(const BertShape& shape, const BatchShape& batch, ParameterStore::Purpose purpose,
                                   const TeamProcessor& processor);

  /// Computes saved.output (T, H) from input (T, H), and fills `saved`.
  void forward(const nn::Pass& pass, const Batch& batch, const DropoutRates& rates, const ConstMatrix<T>& input,
               const BertLayerActivations<T>& saved, const BertLayerScratch<T>& scratch) const;
  /// Recomputes the parts of `saved` that pass.recompute did not keep, bit for bit.
  void restore(const nn::Pass& pass, const Batch& batch, const DropoutRates& rates, const ConstMatrix<T>& input,
               const BertLayerActivations<T>& saved, const BertLayerScratch<T>& scratch) const;
  /// Computes dinput (T, H) from doutput (T, H), and adds the parameter gradients. dinput may alias doutput. Overwrites
  /// saved.pre_activation with its GELU.
  void backward(const nn::Pass& pass, const Batch& batch, const DropoutRates& rates, const ConstMatrix<T>& input,
                const BertLayerActivations<T>& saved, const ConstMatrix<T>& doutput,
                const BertLayerWorkspace<T>& workspace, const Matrix<T>& dinput) const;

 private:
  DropoutKey key(const nn::Pass& pass, std::uint32_t site, float probability) const;

  BertShape shape_;
  std::size_t index_;
  nn::Linear query_key_value_, attention_dense_, intermediate_, output_;
  LayerNormTensors attention_norm_, output_norm_;
};

}  // namespace mylos::families
