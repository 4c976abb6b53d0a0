#include "families/bert/bert_model.hpp"

#include "core/base/text/quantities.hpp"
#include "core/element_type.hpp"
#include "families/bert/bert_body.hpp"
#include "families/bert/bert_config.hpp"
#include "nn/network.hpp"

#include <fmt/format.h>

namespace mylos::families {
namespace {

constexpr AdapterName bert_adapter_names[] = {
    {"q", "query"}, {"k", "key"}, {"v", "value"}, {"o", "attention.output.dense"}, {"up", "intermediate.dense"}};

std::unique_ptr<nn::Model> make_bert(const BertShape& shape, const nn::HeadSettings& head, Precision precision) {
  return with_type(precision, [&]<class T>(T) {
    return nn::make_network<T>(make_bert_body<T>(shape), head.make_head<T>(shape.initializer_range));
  });
}

}  // namespace

TextModel bert_model(const data::ModelConfig& config, std::optional<double> dropout) {
  const BertShape shape = with_dropout(read_bert_config(config), dropout);
  return {.text = fmt::format("{}, hidden {}, {}", count_of(shape.layers, "layer"), shape.hidden,
                              count_of(shape.heads, "head")),
          .vocabulary = shape.vocabulary,
          .positions = shape.positions,
          .attention = attention_shape(shape),
          .dropout = shape.hidden_dropout,
          .attention_dropout = shape.attention_dropout,
          .initializer_range = shape.initializer_range,
          .naming = bert_tensor_naming(),
          .adapter_names = bert_adapter_names,
          .make_network = [shape](const nn::HeadSettings& head, AttentionKernel kernel, Precision precision) {
            return make_bert(with_attention(shape, kernel), head, precision);
          }};
}

std::unique_ptr<nn::Model> make_bert_question_answering(const BertShape& shape, Precision precision) {
  return make_bert(shape, nn::span_head("qa_outputs"), precision);
}

}  // namespace mylos::families
