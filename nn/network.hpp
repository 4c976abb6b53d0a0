#pragma once

#include "core/parameters.hpp"
#include "nn/body.hpp"

#include <span>
#include <string>

namespace mylos::nn {

/// Returns the model of a body and a head. Its units are those of the body, then "head". This is the one place that
/// goes over units, forwards and backwards, and calls the hooks.
template <class T>
std::unique_ptr<Model> make_network(std::unique_ptr<Body<T>> body, std::unique_ptr<Head<T>> head);

/// Runs the units forwards, up to the head's input. The head's unit stays acquired.
template <class T>
void forward_units(const Pass& pass, const Batch& batch, BodyPass<T>& units);

/// Freezes the tensors of `table` that one of `patterns` selects. See Model::freeze.
void freeze_tensors(ParameterTable& table, std::span<const std::string> patterns);

}  // namespace mylos::nn
