#include "families/llama/llama.hpp"

#include "core/element_type.hpp"
#include "nn/heads/vocabulary_head.hpp"
#include "nn/network.hpp"

namespace mylos::families {

std::unique_ptr<nn::Model> make_llama(const LlamaShape& shape, Precision precision) {
  return with_type(precision, [&]<class T>(T) {
    return nn::make_network<T>(make_llama_body<T>(shape),
                               nn::make_vocabulary_head<T>({.weight = shape.tied ? llama_embeddings : "lm_head.weight",
                                                            .vocabulary = shape.vocabulary,
                                                            .initializer_range = shape.initializer_range,
                                                            .lender = shape.tied ? "embeddings" : ""}));
  });
}

}  // namespace mylos::families
