#pragma once

#include "parallel/communicator/communicator.hpp"

#include <span>
#include <string>
#include <utility>

namespace mylos::parallel {

/// A property that must be the same on all ranks: a name ("build", "training data") and its value on this rank.
using NamedValue = std::pair<std::string, std::string>;

/// Checks that all ranks pass the same values. Collective. Errors: std::runtime_error on every rank. It names the first
/// rank that differs from rank 0, and both values of the first property that differs.
void expect_equal_on_all_ranks(Communicator& ranks, std::span<const NamedValue> values);

}  // namespace mylos::parallel
