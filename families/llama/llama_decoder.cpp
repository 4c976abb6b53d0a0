#include "families/llama/llama_decoder.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/products/few_rows_product.hpp"
#include "families/llama/llama_body.hpp"
#include "nn/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mylos::families {
namespace {

namespace names = nn::names;

template <class T>
class Decoder final : public TextDecoder {
 public:
  Decoder(const LlamaShape& shape, const ParameterTable& table)
      : units_{shape}, head_(table.find(next_token_weight(shape))) {
    units_.find_tensors(table);
  }

  void plan(Arena& arena, const DecoderShape& shape) const override;
  std::size_t scratch_bytes(const DecoderShape& shape, const TeamProcessor& processor) const override {
    return attention_forward_scratch<T>(attention_shape(units_.shape), 1, shape.longest_prompt, processor);
  }
  void begin(const nn::Pass& pass, const DecoderShape& shape) override;
  ConstMatrix<float> prefill(const nn::Pass& pass, std::size_t slot, std::span<const std::int32_t> prompt) override;
  ConstMatrix<float> step(const nn::Pass& pass, std::span<const std::size_t> slots,
                          std::span<const std::int32_t> tokens) override;

 private:
  using Caches = std::vector<KeyValueCache<T>>;

  Caches take_caches(Arena& arena, const DecoderShape& shape) const;
  Vector<float> take_workspace(Arena& arena, std::size_t rows, std::size_t longest) const {
    return arena.vector<float>(cached_attention_workspace(attention_shape(units_.shape, 0), rows, longest));
  }
  /// Takes the logits of `rows` rows.
  Matrix<float> take_logits(Arena& arena, std::size_t rows) const {
    return arena.matrix<float>(rows, units_.shape.vocabulary);
  }

  /// Builds the batch from the tokens of the samples in sample_lengths_. Sample i belongs to slot slots_[i], and begins
  /// at position first_positions_[i].
  CachedRows assemble(std::span<const std::int32_t> tokens);
  /// Runs all units over the batch, and returns the logits of the last `count` rows.
  Matrix<float> run(const nn::Pass& pass, LlamaPass<T>& units, const CachedRows& rows, const Vector<float>& workspace,
                    std::size_t count);

  LlamaUnits<T> units_;
  std::size_t head_;  ///< the tensor of the head's weight

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
  const std::size_t size = shape.slots * units_.shape.key_value_heads * units_.shape.head_size * shape.positions;
  for (std::size_t layer = 0; layer < units_.shape.layers; ++layer) {
    const auto keys = arena.vector<T>(size), values = arena.vector<T>(size);
    caches.push_back({keys, values, shape.slots, shape.positions});
  }
  return caches;
}

template <class T>
void Decoder<T>::plan(Arena& arena, const DecoderShape& shape) const {
  take_caches(arena, shape);
  const std::size_t mark = arena.mark();
  LlamaPass<T>(units_).take_prediction(arena, shape.longest_prompt);
  take_logits(arena, 1);
  arena.rewind(mark);
  LlamaPass<T>(units_).take_prediction(arena, shape.slots);
  take_workspace(arena, shape.slots, shape.positions);
  take_logits(arena, shape.slots);
  arena.rewind(mark);
}

template <class T>
void Decoder<T>::begin(const nn::Pass& pass, const DecoderShape& shape) {
  require(shape.positions <= units_.shape.positions && shape.longest_prompt <= shape.positions,
          fmt::format("decoder: prompts of {} tokens and {} positions, and the model has {}", shape.longest_prompt,
                      shape.positions, units_.shape.positions));
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
Matrix<float> Decoder<T>::run(const nn::Pass& pass, LlamaPass<T>& units, const CachedRows& rows,
                              const Vector<float>& workspace, std::size_t count) {
  units.set_caches({caches_, rows, workspace});
  nn::forward_units<T>(pass, batch_, units);
  const Matrix<T>& x = units.output().x;
  const ConstMatrix<T> last(x.data() + (x.extent(0) - count) * units_.shape.hidden, count, units_.shape.hidden);
  const Matrix<float> logits = take_logits(pass.arena, count);
  few_rows_product<T, float>(pass.space, last, pass.parameters.matrix<T>(head_), logits);
  pass.hooks.release(pass.parameters.table().network_units() - 1);
  return logits;
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
  LlamaPass<T> units(units_);
  units.take_prediction(pass.arena, prompt.size());
  const Matrix<float> logits = run(pass, units, rows, {}, 1);
  lengths_[slot] = prompt.size();
  return logits;
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
  LlamaPass<T> units(units_);
  units.take_prediction(pass.arena, slots.size());
  return run(pass, units, rows, take_workspace(pass.arena, slots.size(), rows.longest), slots.size());
}

}  // namespace

std::unique_ptr<TextDecoder> make_llama_decoder(const LlamaShape& shape, Precision precision,
                                                const ParameterTable& table) {
  return with_type(precision, [&]<class T>(T) -> std::unique_ptr<TextDecoder> {
    return std::make_unique<Decoder<T>>(shape, table);
  });
}

}  // namespace mylos::families
