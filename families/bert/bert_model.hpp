#pragma once

#include "families/bert/bert_shape.hpp"
#include "families/interface/text_model.hpp"

namespace mylos::families {

/// Returns a BERT as tasks see it. Errors: those of read_bert_config.
TextModel bert_model(const data::ModelConfig& config, std::optional<double> dropout);

/// Returns a BERT with a span head, "qa_outputs"; `predict` returns (T, 2) logits. Errors: those of make_bert_body.
std::unique_ptr<nn::Model> make_bert_question_answering(const BertShape& shape, Precision precision);

}  // namespace mylos::families
