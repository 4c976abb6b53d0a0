#include "families/llama/llama_model.hpp"

#include "core/base/text/quantities.hpp"
#include "core/element_type.hpp"
#include "families/llama/llama_body.hpp"
#include "families/llama/llama_config.hpp"
#include "families/llama/llama_decoder.hpp"
#include "nn/network.hpp"

#include <fmt/format.h>

namespace mylos::families {
namespace {

constexpr AdapterName llama_adapter_names[] = {{"q", "q_proj"},      {"k", "k_proj"},       {"v", "v_proj"},
                                               {"o", "o_proj"},      {"gate", "gate_proj"}, {"up", "up_proj"},
                                               {"down", "down_proj"}};

nn::HeadSettings next_token_head(const LlamaShape& shape) {
  return nn::vocabulary_head({.weight = next_token_weight(shape),
                              .vocabulary = shape.vocabulary,
                              .initializer_range = shape.initializer_range,
                              .lender = shape.tied ? "embeddings" : ""});
}

std::unique_ptr<nn::Model> make_network(const LlamaShape& shape, const nn::HeadSettings& head, Precision precision) {
  return with_type(precision, [&]<class T>(T) {
    return nn::make_network<T>(make_llama_body<T>(shape), head.make_head<T>(shape.initializer_range));
  });
}

}  // namespace

TextModel llama_model(const data::ModelConfig& config, std::optional<double>) {
  const LlamaShape shape = read_llama_config(config);
  return {.text = fmt::format("{}, hidden {}, {}, {}", count_of(shape.layers, "layer"), shape.hidden,
                              count_of(shape.heads, "head"), count_of(shape.key_value_heads, "key/value head")),
          .vocabulary = shape.vocabulary,
          .positions = shape.positions,
          .attention = attention_shape(shape),
          .initializer_range = shape.initializer_range,
          .naming = llama_tensor_naming(shape.tied),
          .begin_token = llama_member(shape.model_type).has_tokens ? shape.begin_token : std::nullopt,
          .end_tokens = shape.end_tokens,
          .next_token = next_token_head(shape),
          .adapter_names = llama_adapter_names,
          .make_network =
              [shape](const nn::HeadSettings& head, AttentionKernel kernel, Precision precision) {
                return make_network(with_attention(shape, kernel), head, precision);
              },
          .make_decoder =
              [shape](AttentionKernel kernel, Precision precision, const ParameterTable& table) {
                return make_llama_decoder(with_attention(shape, kernel), precision, table);
              }};
}

std::unique_ptr<nn::Model> make_llama(const LlamaShape& shape, Precision precision) {
  return make_network(shape, next_token_head(shape), precision);
}

}  // namespace mylos::families
