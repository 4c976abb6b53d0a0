#include "tasks/question_answering/bert_shape.hpp"

namespace mylos::tasks {

families::BertShape bert_shape(const families::BertConfig& config, std::optional<double> dropout) {
  return {.vocabulary = config.vocab_size,
          .hidden = config.hidden_size,
          .layers = config.num_hidden_layers,
          .heads = config.num_attention_heads,
          .feed_forward = config.intermediate_size,
          .positions = config.max_position_embeddings,
          .token_types = config.type_vocab_size,
          .hidden_dropout = static_cast<float>(dropout.value_or(config.hidden_dropout_prob)),
          .attention_dropout = static_cast<float>(dropout.value_or(config.attention_probs_dropout_prob)),
          .layer_norm_epsilon = static_cast<float>(config.layer_norm_eps),
          .initializer_range = static_cast<float>(config.initializer_range),
          .padding_token = config.pad_token_id ? static_cast<std::int32_t>(*config.pad_token_id) : no_padding};
}

AttentionUse bert_attention(const families::BertShape& shape, const train::TrainConfig& engine, bool trains) {
  return {.shape = families::attention_shape(shape),
          .precision = engine.precision,
          .dropout = trains ? static_cast<double>(shape.attention_dropout) : 0.0,
          .deterministic = engine.parallel.deterministic};
}

}  // namespace mylos::tasks
