#include "tasks/language_modeling/llama_shape_of.hpp"

namespace mylos::tasks {
namespace {

families::RotaryScaling scaling_of(const families::RopeScaling& scaling) {
  using Kind = families::RotaryScaling::Kind;
  using Type = families::RopeScaling::Type;
  const Kind kind = scaling.type == Type::none     ? Kind::none
                    : scaling.type == Type::linear ? Kind::linear
                                                   : Kind::llama3;
  return {.kind = kind,
          .factor = scaling.factor,
          .low_frequency_factor = scaling.low_freq_factor,
          .high_frequency_factor = scaling.high_freq_factor,
          .original_positions = scaling.original_max_position_embeddings};
}

}  // namespace

families::LlamaShape llama_shape_of(const families::LlamaConfig& config) {
  return {.vocabulary = config.vocab_size,
          .hidden = config.hidden_size,
          .layers = config.num_hidden_layers,
          .heads = config.num_attention_heads,
          .key_value_heads = config.num_key_value_heads,
          .head_size = config.head_dim,
          .feed_forward = config.intermediate_size,
          .positions = config.max_position_embeddings,
          .rope_theta = config.rope_theta,
          .rope_scaling = scaling_of(config.rope_scaling),
          .rms_norm_epsilon = static_cast<float>(config.rms_norm_eps),
          .initializer_range = static_cast<float>(config.initializer_range),
          .tied = config.tie_word_embeddings,
          .padding_token = config.pad_token_id ? static_cast<std::int32_t>(*config.pad_token_id) : no_padding};
}

AttentionUse llama_attention(const families::LlamaShape& shape, const train::TrainConfig& engine) {
  return {.shape = families::attention_shape(shape),
          .precision = engine.precision,
          .deterministic = engine.parallel.deterministic};
}

}  // namespace mylos::tasks
