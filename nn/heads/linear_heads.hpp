#pragma once

#include "nn/head.hpp"

#include <memory>
#include <string>

/// Heads of one linear layer with a bias: the logits of each row are float, and a loss gives their gradient.
namespace mylos::nn {

/// Returns a head with a start and an end logit for each row, `predict` returns both (T, 2), and a sample's loss is the
/// mean of both cross entropies over its rows. Its layer is called `name`.
template <class T>
std::unique_ptr<Head<T>> make_span_head(const std::string& name, float initializer_range);

/// Returns a head with the logits of `classes` classes for each row, (T, classes), and softmax cross entropy with
/// labels. A sample's loss is the sum over its rows. Its layer is called `name`. All its initial values are uniform
/// between +-`initializer_range`.
template <class T>
std::unique_ptr<Head<T>> make_class_head(const std::string& name, std::size_t classes, float initializer_range,
                                         float label_smoothing);

}  // namespace mylos::nn
