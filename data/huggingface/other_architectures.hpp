#pragma once

#include <string>
#include <string_view>

/// Names of models with architectures that Mylos does not train.
namespace mylos::data {

/// Returns "roberta-base is the name of a RoBERTa model; BERT models, Llamas and ResNets are supported, such as
/// bert-base-uncased" if `name`, a name on the hub with or without an owner, is known to have another architecture.
/// Otherwise returns an empty string.
std::string architecture_obstacle(std::string_view name);

}  // namespace mylos::data
