#pragma once

#include "families/interface/text_model.hpp"
#include "families/llama/llama_shape.hpp"

namespace mylos::families {

/// Returns a Llama as tasks see it, which has no dropout. Errors: those of read_llama_config.
TextModel llama_model(const data::ModelConfig& config, std::optional<double> dropout);

/// Returns a Llama whose head predicts the next token; `predict` returns (T, 1), the likeliest one. A sample's loss is
/// the sum over its predicted tokens. With tied embeddings the head borrows their tensor, otherwise it has
/// "lm_head.weight". Errors: those of make_llama_body.
std::unique_ptr<nn::Model> make_llama(const LlamaShape& shape, Precision precision);

}  // namespace mylos::families
