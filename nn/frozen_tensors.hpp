#pragma once

#include "core/parameters.hpp"

#include <span>
#include <string>

namespace mylos::nn {

/// Freezes the tensors of `table` that one of `patterns` selects. See Model::freeze.
void freeze_tensors(ParameterTable& table, std::span<const std::string> patterns);

}  // namespace mylos::nn
