#pragma once

#include "parallel/communicator/communicator.hpp"

#include <span>
#include <string>
#include <utility>

namespace mylos::parallel {

/// What a run takes to be the same everywhere: a name ("build", "training data") and its value on this rank.
using NamedValue = std::pair<std::string, std::string>;

/// Collective. Errors: on every rank std::runtime_error that names the first rank whose values are not those of rank 0,
/// and both values of the first that differs.
void expect_equal_on_all_ranks(Communicator& ranks, std::span<const NamedValue> values);

}  // namespace mylos::parallel
