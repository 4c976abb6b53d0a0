#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/text/python_json.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/model_family.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/bert/bert_shape.hpp"

/// The configuration of a BERT model in Hugging Face's config.json.
namespace mylos::families {

/// The sizes of Devlin et al. 2019, uncased, and MiniLM-L6-H384-uncased.
inline constexpr std::array known_berts{
    data::KnownModel{"bert-base", "bert-base-uncased",
                     R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
                         "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512})"},
    data::KnownModel{"bert-large", "bert-large-uncased",
                     R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24,
                         "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512})"},
    data::KnownModel{"minilm", "minilm",
                     R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6,
                         "num_attention_heads": 12, "intermediate_size": 1536, "max_position_embeddings": 512})"}};

/// Reads a config.json with the defaults of Hugging Face's BertConfig.
/// Throws std::runtime_error with the file, the key, its value and the supported values for another model type,
/// impossible sizes, another activation or relative position embeddings.
BertShape read_bert_config(const data::ModelConfig& from);

/// Returns the shape with this dropout in place of its own, unless that is nullopt.
BertShape with_dropout(BertShape shape, std::optional<double> dropout);

/// Returns the config.json of a BertForQuestionAnswering that transformers can load.
OrderedJson bert_config_json(const BertShape& config);

/// Returns the name of tensor `name` in current transformers: LayerNorm.gamma becomes .weight, .beta becomes .bias, and
/// the "embeddings." and "encoder." of a bare encoder get the prefix "bert.".
std::string canonical_bert_name(std::string_view name);

/// True for tensors of the heads for pre-training and for the classification of texts or tokens, by canonical name.
bool is_other_bert_head(std::string_view name);

/// Returns the naming based on canonical_bert_name. It ignores the pooler, heads for other tasks, and buffers that hold
/// no weights.
data::TensorNaming bert_tensor_naming();

}  // namespace mylos::families
