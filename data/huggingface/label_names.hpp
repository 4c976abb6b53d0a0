#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/text/python_json.hpp"
#include "data/huggingface/config_reader.hpp"

/// The names of a classifier's labels in config.json: id2label, label2id and num_labels.
namespace mylos::data {

inline constexpr std::size_t most_labels = 1'000'000;

/// Returns "LABEL_0", "LABEL_1", ...: transformers' names for unnamed labels.
std::vector<std::string> unnamed_labels(std::size_t count);

/// Returns the names in id2label, in the order of the ids. Without it there are num_labels unnamed labels; `count`
/// without both. Errors: std::runtime_error with the file, the key and the value.
std::vector<std::string> read_label_names(const ConfigReader& reader, std::size_t count);

/// Sets id2label and label2id of `config`.
void write_label_names(const std::vector<std::string>& labels, OrderedJson& config);

}  // namespace mylos::data
