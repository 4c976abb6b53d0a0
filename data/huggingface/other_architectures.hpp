#pragma once

#include <string>
#include <string_view>

/// Names of models that are known to be something else than BERT.
namespace mylos::data {

/// Returns "roberta-base is the name of a RoBERTa model; only BERT models are supported, such as bert-base-uncased"
/// where the hub's name, with or without an owner, is that of another architecture, else an empty string.
std::string architecture_obstacle(std::string_view name);

}  // namespace mylos::data
