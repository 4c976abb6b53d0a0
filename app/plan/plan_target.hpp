#pragma once

#include "app/options/arguments.hpp"
#include "nn/model.hpp"
#include "train/planning/run_plan.hpp"

#include <cstddef>

/// The machine that plan was told of.
namespace mylos::app {

/// Threads of a rank there.
std::size_t planned_threads(const Arguments& arguments);

/// With the rate at which it trains models like this one, measured or assumed. Errors: UsageError for what does not go
/// together; std::runtime_error naming the file of a measurement that is of something else, or a precision that the
/// machine has not.
train::PlanTarget make_target(const Arguments& arguments, const nn::Model& model);

}  // namespace mylos::app
