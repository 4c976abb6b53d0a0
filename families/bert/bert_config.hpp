#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/python_json.hpp"
#include "families/bert/bert_shape.hpp"

namespace mylos::data {
class PretrainedModel;
}

/// The configuration of a BERT model in Hugging Face's config.json.
namespace mylos::families {

/// Parses the configuration in `json`, which was read from `file`, with the defaults of Hugging Face's BertConfig.
/// Throws std::runtime_error with the file, the key, its value and the supported values for another model type,
/// impossible sizes, another activation or relative position embeddings.
BertShape parse_bert_config(const Json& json, const std::string& file);

/// Reads config.json. Errors as for parse_bert_config.
BertShape read_bert_config(const std::filesystem::path& path);
BertShape read_bert_config(const data::PretrainedModel& model);

/// Returns the shape with this dropout in place of its own, unless that is nullopt.
BertShape with_dropout(BertShape shape, std::optional<double> dropout);

/// Returns the config.json of a BertForQuestionAnswering that transformers can load.
OrderedJson bert_config_json(const BertShape& config);

}  // namespace mylos::families
