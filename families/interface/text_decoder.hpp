#pragma once

#include "nn/model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

/// Token-by-token generation with a key-value cache. Each step reads the weights once, for the next token of all
/// sequences.
namespace mylos::families {

/// Sizes that determine a decoder's memory.
struct DecoderShape {
  std::size_t slots = 0;           ///< S, sequences in the cache
  std::size_t positions = 0;       ///< maximum tokens per sequence, prompt and continuation together
  std::size_t longest_prompt = 0;  ///< in tokens
};

/// The decoder of a model. The results of a sequence do not depend on the other sequences: prompts are processed one at
/// a time, and a step sums each row in the same order for any number of rows. The results differ from those of a pass
/// over the whole sequence by rounding.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;

  /// Allocates from `arena` all memory that a decoder of this shape needs.
  virtual void plan(Arena& arena, const DecoderShape& shape) const = 0;
  /// Returns the bytes of kernel scratch needed in addition to the arena.
  virtual std::size_t scratch_bytes(const DecoderShape& shape, const TeamProcessor& processor) const = 0;

  /// Allocates the cache from pass.arena, which must have been planned for `shape` and belongs to the decoder from now
  /// on. All slots are empty. Errors: std::invalid_argument if shape.positions exceeds the model's.
  virtual void begin(const nn::Pass& pass, const DecoderShape& shape) = 0;
  /// Processes a prompt of at least one token and stores it in a slot, replacing the previous contents. Returns the
  /// logits (1, V) of its last token, which are valid until the next call. Token ids are not checked. Errors:
  /// std::invalid_argument if the prompt is empty or longer than planned.
  virtual ConstMatrix<float> prefill(const nn::Pass& pass, std::size_t slot, std::span<const std::int32_t> prompt) = 0;
  /// Appends tokens[b] to slot slots[b]. The B slots must be distinct, and each must hold a prompt. Returns the logits
  /// (B, V) of these tokens, which are valid until the next call. Errors: std::invalid_argument if a slot is full.
  virtual ConstMatrix<float> step(const nn::Pass& pass, std::span<const std::size_t> slots,
                                  std::span<const std::int32_t> tokens) = 0;
};

}  // namespace mylos::families
