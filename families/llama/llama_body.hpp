#pragma once

#include "families/llama/llama_layer.hpp"
#include "nn/body.hpp"
#include "nn/model.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mylos::families {

inline constexpr const char* llama_embeddings = "model.embed_tokens.weight";
/// Returns the tensor that gives the logits of the next token.
inline const char* next_token_weight(const LlamaShape& shape) {
  return shape.tied ? llama_embeddings : "lm_head.weight";
}

/// Returns the embeddings, layers and final norm of a Llama: a vector (H) for each token. Tensors have Hugging Face's
/// names; the units are "embeddings", "layer.0", ... Errors: std::invalid_argument if the sizes in `shape` do not fit
/// together.
template <class T>
std::unique_ptr<nn::Body<T>> make_llama_body(const LlamaShape& shape);

/// The tensors of a Llama's body: unit 0 has the embeddings, unit i + 1 layer i, and the head's unit the final norm.
template <class T>
struct LlamaUnits {
  void find_tensors(const ParameterTable& table);
  RmsNormParameters<T> norm_of(const nn::Pass& pass) const {
    return {pass.parameters.values<T>(norm), shape.rms_norm_epsilon};
  }

  LlamaShape shape;
  RotaryFrequencies frequencies = {};
  std::size_t embeddings = 0, norm = 0;
  std::vector<LlamaLayer<T>> layers = {};
};

/// The caches of a pass that generates: one for each layer, and the place of the rows in them.
template <class T>
struct LlamaCaches {
  std::span<const KeyValueCache<T>> layers;
  CachedRows rows;
  Vector<float> workspace = {};  ///< as in LlamaCache
};

/// A pass through a Llama's body, of training, prediction or generation.
template <class T>
class LlamaPass final : public nn::BodyPass<T> {
 public:
  explicit LlamaPass(const LlamaUnits<T>& units) : units_(units) {}

  /// Layers below the first trained unit keep nothing: they use the arrays of the first trained layer, or of the last.
  void take_training(Arena& arena, const BatchShape& batch, nn::Recompute recompute, std::size_t first_trained);
  /// Nothing is kept: all layers, and the head's norm, reuse the memory of one layer.
  void take_prediction(Arena& arena, std::size_t rows);
  /// Makes a pass of prediction one of generation.
  void set_caches(const LlamaCaches<T>& caches) { caches_ = caches; }

  void forward(const nn::Pass& pass, const Batch& batch, std::size_t unit) override;
  void finish(const nn::Pass& pass, const Batch& batch) override;
  void finish_backward(const nn::Pass& pass, const Batch& batch) override;
  void restore(const nn::Pass& pass, const Batch& batch, std::size_t unit) override;
  void backward(const nn::Pass& pass, const Batch& batch, std::size_t unit) override;

 private:
  const LlamaUnits<T>& units_;
  Matrix<float> rotary_;  ///< (T, D)
  std::vector<LlamaLayerActivations<T>> layers_;
  RmsNormSaved<T> norm_;          ///< for the head
  LlamaLayerScratch<T> scratch_;  ///< after the forward pass, `normal` holds the head's input
  Matrix<T> dx_;                  ///< (T, H), gradient passed down through the layers
  LlamaLayerWorkspace<T> workspace_;
  std::optional<LlamaCaches<T>> caches_;
};

}  // namespace mylos::families
