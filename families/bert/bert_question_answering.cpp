#include "families/bert/bert_question_answering.hpp"

#include "core/element_type.hpp"
#include "nn/heads/span_head.hpp"
#include "nn/network.hpp"

namespace mylos::families {

std::unique_ptr<nn::Model> make_bert_question_answering(const BertShape& shape, Precision precision) {
  return with_type(precision, [&]<class T>(T) {
    return nn::make_network<T>(make_bert_body<T>(shape), nn::make_span_head<T>("qa_outputs", shape.initializer_range));
  });
}

}  // namespace mylos::families
