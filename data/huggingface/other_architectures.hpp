#pragma once

#include <string>
#include <string_view>

/// Names of models that are known to be of architectures that Mylos does not train.
namespace mylos::data {

/// Returns "roberta-base is the name of a RoBERTa model; BERT models and Llamas are supported, such as
/// bert-base-uncased" where the hub's name, with or without an owner, is that of another architecture, else an empty
/// string.
std::string architecture_obstacle(std::string_view name);

}  // namespace mylos::data
