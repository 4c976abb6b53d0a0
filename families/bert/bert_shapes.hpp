#pragma once

#include "families/bert/bert_config.hpp"

#include <span>
#include <string>
#include <string_view>

/// BERT models known by their sizes alone, for commands that need no weights.
namespace mylos::families {

struct NamedBert {
  std::string name;
  BertShape config;
  std::string fetched = {};  ///< name of such a model with weights for `mylos fetch` and --model
};

/// Returns bert-base (Devlin et al. 2019, uncased), bert-large and minilm (6 layers of 384, MiniLM-L6-H384-uncased).
std::span<const NamedBert> bert_shapes();

/// Returns the shape called `name`, also under names such as bert-base-uncased for bert-base. Null if there is none.
const NamedBert* find_bert_shape(std::string_view name);

}  // namespace mylos::families
