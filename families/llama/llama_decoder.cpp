#include "families/llama/llama_decoder.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/cached_attention.hpp"
#include "core/kernels/few_rows_product.hpp"
#include "core/kernels/swiglu.hpp"
#include "families/llama/llama.hpp"
#include "families/llama/llama_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mylos::families {
namespace {

namespace names = language_modeling;

/// Memory for processing a prompt; all layers use the same.
template <class T>
struct PrefillMemory {
  Matrix<float> rotary;  ///< (T, D)
  LlamaLayerActivations<T> layer;
  LlamaLayerScratch<T> scratch;  ///< after the last layer, `normal` holds the head's input
  Matrix<float> logits;          ///< (1, V)
};

/// Memory for a step; all layers use the same.
template <class T>
struct StepMemory {
  Matrix<float> rotary;     ///< (B, D)
  RmsNormSaved<T> first;    ///< (B, H), input of a layer's first norm
  RmsNormSaved<T> second;   ///< (B, H), input of a layer's second norm
  Matrix<T> normal;         ///< (B, H)
  Matrix<T> qkv;            ///< (B, (A + 2 KV) D)
  Matrix<T> context;        ///< (B, A D)
  Matrix<T> gate_up;        ///< (B, 2F)
  Matrix<T> activation;     ///< (B, F)
  Vector<float> attention;  ///< size: see cached_attention_workspace
  Matrix<float> logits;     ///< (B, V)
};

template <class T>
class Decoder final : public LlamaDecoder {
 public:
  Decoder(const LlamaShape& shape, const ParameterTable& table)
      : shape_(shape),
        frequencies_(rotary_frequencies(shape)),
        embeddings_(table.find("model.embed_tokens.weight")),
        norm_(table.find("model.norm.weight")),
        head_(shape.tied ? embeddings_ : table.find("lm_head.weight")),
        embeddings_unit_(table.tensor(embeddings_).unit),
        head_unit_(table.tensor(norm_).unit) {
    for (std::size_t layer = 0; layer < shape.layers; ++layer) layers_.emplace_back(table, shape, layer);
  }

  void plan(Arena& arena, const DecoderShape& shape) const override;
  std::size_t scratch_bytes(const DecoderShape& shape, const TeamProcessor& processor) const override {
    return attention_forward_scratch<T>(attention_shape(shape_), 1, shape.longest_prompt, processor);
  }
  void begin(const nn::Pass& pass, const DecoderShape& shape) override;
  ConstMatrix<float> prefill(const nn::Pass& pass, std::size_t slot, std::span<const std::int32_t> prompt) override;
  ConstMatrix<float> step(const nn::Pass& pass, std::span<const std::size_t> slots,
                          std::span<const std::int32_t> tokens) override;

 private:
  using Caches = std::vector<KeyValueCache<T>>;

  Caches take_caches(Arena& arena, const DecoderShape& shape) const;
  PrefillMemory<T> take_prefill(Arena& arena, std::size_t rows) const;
  StepMemory<T> take_step(Arena& arena, std::size_t rows, std::size_t longest) const;

  /// Builds the batch from the tokens of the samples in sample_lengths_. Sample i belongs to slot slots_[i], and begins
  /// at position first_positions_[i].
  CachedRows assemble(std::span<const std::int32_t> tokens);
  void embed(const nn::Pass& pass, const Matrix<T>& x) const;
  void decode_layer(const nn::Pass& pass, std::size_t layer, const CachedRows& rows, bool has_residual,
                    const StepMemory<T>& memory) const;
  /// y = x W^T for a small number of rows.
  void multiply(const nn::Pass& pass, const nn::Linear& linear, const ConstMatrix<T>& x, const Matrix<T>& y) const {
    few_rows_product<T, T>(pass.space, x, pass.parameters.stacked_matrix<T>(linear.weight, linear.stacked), y);
  }
  /// logits = x W^T for the head's weight. Releases the head's unit.
  void multiply_head(const nn::Pass& pass, const ConstMatrix<T>& x, const Matrix<float>& logits) const {
    few_rows_product<T, float>(pass.space, x, pass.parameters.matrix<T>(head_), logits);
    pass.hooks.release(head_unit_);
  }
  RmsNormParameters<T> norm(const nn::Pass& pass, std::size_t row) const {
    return {pass.parameters.values<T>(row), shape_.rms_norm_epsilon};
  }

  LlamaShape shape_;
  RotaryFrequencies frequencies_;
  std::size_t embeddings_, norm_, head_, embeddings_unit_, head_unit_;
  std::vector<LlamaLayer<T>> layers_;

  DecoderShape sizes_;
  Caches caches_;                     ///< one per layer
  std::size_t mark_ = 0;              ///< end of the cache in the arena
  std::vector<std::size_t> lengths_;  ///< tokens in each slot
  Batch batch_{{}, Batch::Purpose::inference};
  std::vector<std::uint32_t> slots_;
  std::vector<std::size_t> sample_lengths_, first_positions_;
};

template <class T>
typename Decoder<T>::Caches Decoder<T>::take_caches(Arena& arena, const DecoderShape& shape) const {
  Caches caches;
  const std::size_t size = shape.slots * shape_.key_value_heads * shape_.head_size * shape.positions;
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    const auto keys = arena.vector<T>(size), values = arena.vector<T>(size);
    caches.push_back({keys, values, shape.slots, shape.positions});
  }
  return caches;
}

template <class T>
PrefillMemory<T> Decoder<T>::take_prefill(Arena& arena, std::size_t rows) const {
  PrefillMemory<T> memory;
  memory.rotary = arena.matrix<float>(rows, shape_.head_size);
  memory.layer = LlamaLayer<T>::take_activations(arena, shape_, rows);
  memory.scratch = LlamaLayer<T>::take_scratch(arena, shape_, rows);
  memory.logits = arena.matrix<float>(1, shape_.vocabulary);
  return memory;
}

template <class T>
StepMemory<T> Decoder<T>::take_step(Arena& arena, std::size_t rows, std::size_t longest) const {
  StepMemory<T> memory;
  memory.rotary = arena.matrix<float>(rows, shape_.head_size);
  memory.first = {arena.matrix<T>(rows, shape_.hidden), arena.vector<float>(rows)};
  memory.second = {arena.matrix<T>(rows, shape_.hidden), arena.vector<float>(rows)};
  memory.normal = arena.matrix<T>(rows, shape_.hidden);
  memory.qkv = arena.matrix<T>(rows, shape_.qkv_columns());
  memory.context = arena.matrix<T>(rows, shape_.query_columns());
  memory.gate_up = arena.matrix<T>(rows, 2 * shape_.feed_forward);
  memory.activation = arena.matrix<T>(rows, shape_.feed_forward);
  memory.attention = arena.vector<float>(cached_attention_workspace(attention_shape(shape_), rows, longest));
  memory.logits = arena.matrix<float>(rows, shape_.vocabulary);
  return memory;
}

template <class T>
void Decoder<T>::plan(Arena& arena, const DecoderShape& shape) const {
  take_caches(arena, shape);
  const std::size_t mark = arena.mark();
  take_prefill(arena, shape.longest_prompt);
  arena.rewind(mark);
  take_step(arena, shape.slots, shape.positions);
  arena.rewind(mark);
}

template <class T>
void Decoder<T>::begin(const nn::Pass& pass, const DecoderShape& shape) {
  require(shape.positions <= shape_.positions && shape.longest_prompt <= shape.positions,
          fmt::format("decoder: prompts of {} tokens and {} positions, and the model has {}", shape.longest_prompt,
                      shape.positions, shape_.positions));
  pass.arena.rewind(0);
  sizes_ = shape;
  caches_ = take_caches(pass.arena, shape);
  mark_ = pass.arena.mark();
  lengths_.assign(shape.slots, 0);
}

template <class T>
CachedRows Decoder<T>::assemble(std::span<const std::int32_t> tokens) {
  // A decoder draws no random numbers, so the slots can take the place of the samples' ids.
  batch_.reset(sample_lengths_, slots_, first_positions_);
  batch_.set(names::tokens, tokens);
  CachedRows rows{batch_.sample_ids(), batch_.samples_of_rows(), batch_.positions()};
  for (std::size_t sample = 0; sample < slots_.size(); ++sample) {
    const std::size_t length = sample_lengths_[sample], first = first_positions_[sample];
    rows.longest = std::max(rows.longest, first + length);
    rows.visible += length * first + length * (length + 1) / 2;
  }
  return rows;
}

template <class T>
void Decoder<T>::embed(const nn::Pass& pass, const Matrix<T>& x) const {
  pass.hooks.acquire(embeddings_unit_);
  embedding_lookup<T>(pass.space, batch_.integers(names::tokens), pass.parameters.matrix<T>(embeddings_), false, x);
  pass.hooks.release(embeddings_unit_);
}

template <class T>
ConstMatrix<float> Decoder<T>::prefill(const nn::Pass& pass, std::size_t slot, std::span<const std::int32_t> prompt) {
  require(
      slot < lengths_.size() && !prompt.empty() && prompt.size() <= sizes_.longest_prompt,
      fmt::format("decoder: a prompt of {} tokens for slot {}, and it was begun for {} slots and prompts of 1 to {}",
                  prompt.size(), slot, lengths_.size(), sizes_.longest_prompt));
  slots_.assign(1, static_cast<std::uint32_t>(slot));
  sample_lengths_.assign(1, prompt.size());
  first_positions_.assign(1, 0);
  const CachedRows rows = assemble(prompt);
  pass.arena.rewind(mark_);
  const PrefillMemory<T> memory = take_prefill(pass.arena, prompt.size());
  rotary_table(pass.space, rows.positions, frequencies_, memory.rotary);
  const LlamaTokens tokens{batch_, memory.rotary};
  const Matrix<T>& x = memory.layer.attention_norm.input;
  embed(pass, x);
  ConstMatrix<T> residual;  // empty for the first layer
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    pass.hooks.acquire(layers_[layer].unit());
    layers_[layer].forward(pass, tokens, residual, memory.layer, memory.scratch, x);
    store_keys_values<T>(pass.space, attention_shape(shape_), memory.layer.qkv, rows, caches_[layer]);
    pass.hooks.release(layers_[layer].unit());
    residual = memory.layer.mlp_norm.input;
  }
  pass.hooks.acquire(head_unit_);
  residual_rms_norm<T>(pass.space, residual, norm(pass, norm_), memory.layer.attention_norm, memory.scratch.normal);
  const std::size_t last = prompt.size() - 1;
  const ConstMatrix<T> last_row(memory.scratch.normal.data() + last * shape_.hidden, 1, shape_.hidden);
  multiply_head(pass, last_row, memory.logits);
  lengths_[slot] = prompt.size();
  return memory.logits;
}

template <class T>
void Decoder<T>::decode_layer(const nn::Pass& pass, std::size_t layer, const CachedRows& rows, bool has_residual,
                              const StepMemory<T>& memory) const {
  const LlamaLayerTensors own = layers_[layer].rows();
  const AttentionShape attention = attention_shape(shape_);
  pass.hooks.acquire(own.unit);
  const ConstMatrix<T> residual = has_residual ? ConstMatrix<T>(memory.second.input) : ConstMatrix<T>();
  residual_rms_norm<T>(pass.space, residual, norm(pass, own.attention_norm), memory.first, memory.normal);
  multiply(pass, own.query_key_value, memory.normal, memory.qkv);
  rotate<T>(pass.space, memory.rotary, shape_.heads + shape_.key_value_heads, Rotation::forward, memory.qkv);
  store_keys_values<T>(pass.space, attention, memory.qkv, rows, caches_[layer]);
  cached_attention<T>(pass.space, attention, memory.qkv, rows, caches_[layer], memory.attention, memory.context);
  multiply(pass, own.attention_output, memory.context, memory.second.input);
  residual_rms_norm<T>(pass.space, memory.first.input, norm(pass, own.mlp_norm), memory.second, memory.normal);
  multiply(pass, own.gate_up, memory.normal, memory.gate_up);
  swiglu<T>(pass.space, memory.gate_up, memory.activation);
  multiply(pass, own.down, memory.activation, memory.first.input);
  pass.hooks.release(own.unit);
}

template <class T>
ConstMatrix<float> Decoder<T>::step(const nn::Pass& pass, std::span<const std::size_t> slots,
                                    std::span<const std::int32_t> tokens) {
  require(!slots.empty() && slots.size() == tokens.size() && slots.size() <= lengths_.size(),
          fmt::format("decoder: {} tokens for {} of {} slots", tokens.size(), slots.size(), lengths_.size()));
  slots_.clear();
  first_positions_.clear();
  for (const std::size_t slot : slots) {
    require(slot < lengths_.size() && lengths_[slot] > 0 && lengths_[slot] < sizes_.positions,
            fmt::format("decoder: slot {} of {} has {} tokens of {}", slot, lengths_.size(),
                        slot < lengths_.size() ? lengths_[slot] : 0, sizes_.positions));
    require(std::ranges::count(slots, slot) == 1, fmt::format("decoder: slot {} is there twice", slot));
    slots_.push_back(static_cast<std::uint32_t>(slot));
    first_positions_.push_back(lengths_[slot]);
  }
  for (const std::size_t slot : slots) ++lengths_[slot];
  sample_lengths_.assign(slots.size(), 1);
  const CachedRows rows = assemble(tokens);
  pass.arena.rewind(mark_);
  const StepMemory<T> memory = take_step(pass.arena, slots.size(), rows.longest);
  rotary_table(pass.space, rows.positions, frequencies_, memory.rotary);
  embed(pass, memory.first.input);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) decode_layer(pass, layer, rows, layer > 0, memory);
  pass.hooks.acquire(head_unit_);
  residual_rms_norm<T>(pass.space, memory.second.input, norm(pass, norm_), memory.first, memory.normal);
  multiply_head(pass, memory.normal, memory.logits);
  return memory.logits;
}

}  // namespace

std::unique_ptr<LlamaDecoder> make_llama_decoder(const LlamaShape& shape, Precision precision,
                                                 const ParameterTable& table) {
  return with_type(precision, [&]<class T>(T) -> std::unique_ptr<LlamaDecoder> {
    return std::make_unique<Decoder<T>>(shape, table);
  });
}

}  // namespace mylos::families
