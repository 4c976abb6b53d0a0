#pragma once

#include "nn/llama/llama_shape.hpp"
#include "nn/model.hpp"

#include <cstdint>
#include <memory>
#include <span>

/// Llama token by token: keys and values of the tokens so far are kept, and each step reads the weights once for the
/// next token of every sequence.
namespace mylos::nn {

/// What a decoder's memory is counted from.
struct DecoderShape {
  std::size_t slots = 0;           ///< S sequences that are kept at once
  std::size_t positions = 0;       ///< tokens of each at the most, prompt and continuation
  std::size_t longest_prompt = 0;  ///< tokens
};

/// A sequence's numbers do not depend on others: prompts are passed one at a time, and a step sums each row in the same
/// order however many there are. They differ from those of a pass over the whole sequence by rounding.
class LlamaDecoder {
 public:
  virtual ~LlamaDecoder() = default;

  /// Takes from an arena all that a decoder of this shape takes.
  virtual void plan(Arena& arena, const DecoderShape& shape) const = 0;
  /// Bytes that kernels work in beside the arena.
  virtual std::size_t scratch_bytes(const DecoderShape& shape, const TeamProcessor& processor) const = 0;

  /// Takes the cache from pass.arena, which is the decoder's from now on and was planned for `shape`; all slots are
  /// empty. Errors: std::invalid_argument where there are more positions than the model has.
  virtual void begin(const Pass& pass, const DecoderShape& shape) = 0;
  /// Puts a prompt of at least one token into a slot, in place of what was there. Returns the logits (1, V) of its last
  /// token, which are valid until the next call. Errors: std::invalid_argument for a prompt that is empty or longer
  /// than what was planned; ids were checked.
  virtual ConstMatrix<float> prefill(const Pass& pass, std::size_t slot, std::span<const std::int32_t> prompt) = 0;
  /// Appends tokens[b] to slot slots[b], each of which has a prompt, for B different slots. Returns the logits (B, V)
  /// of these tokens, valid until the next call. Errors: std::invalid_argument where a slot is full.
  virtual ConstMatrix<float> step(const Pass& pass, std::span<const std::size_t> slots,
                                  std::span<const std::int32_t> tokens) = 0;
};

/// A decoder for the parameters of make_llama's table, which outlives it.
std::unique_ptr<LlamaDecoder> make_llama_decoder(const LlamaShape& shape, Precision precision,
                                                 const ParameterTable& table);

}  // namespace mylos::nn
