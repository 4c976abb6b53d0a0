#pragma once

#include "nn/head.hpp"

#include <memory>
#include <string>

namespace mylos::nn {

/// Returns a head with a start and an end logit for each row, `predict` returns both (T, 2), and a sample's loss is the
/// mean of both cross entropies over its rows. Its layer is called `name`.
template <class T>
std::unique_ptr<Head<T>> make_span_head(const std::string& name, float initializer_range);

}  // namespace mylos::nn
