#pragma once

#include "data/huggingface/bert_config.hpp"

#include <span>
#include <string>
#include <string_view>

/// BERT models that are known by their sizes alone, for what needs no weights.
namespace mylos::data {

struct NamedBert {
  std::string name;
  BertConfig config;
  std::string fetched = {};  ///< what `mylos fetch` and --model call one of this shape; empty: of files
};

/// bert-base (Devlin et al. 2019, uncased), bert-large and minilm (6 layers of 384, MiniLM-L6-H384-uncased).
std::span<const NamedBert> bert_shapes();

/// The one called `name`, also bert-base-uncased for bert-base and the like; null where there is none.
const NamedBert* find_bert_shape(std::string_view name);

}  // namespace mylos::data
