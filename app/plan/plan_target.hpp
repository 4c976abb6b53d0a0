#pragma once

#include "app/options/arguments.hpp"
#include "nn/model.hpp"
#include "train/planning/run_plan.hpp"

#include <cstddef>

/// The machine that `mylos plan` plans for.
namespace mylos::app {

/// Returns the threads per rank on that machine.
std::size_t planned_threads(const Arguments& arguments);

/// Returns the machine with the rate at which it trains models like this one, measured or assumed. Errors: UsageError
/// for options that exclude each other; std::runtime_error naming the measurement's file if it does not match, or the
/// precision if the machine does not support it.
train::PlanTarget make_target(const Arguments& arguments, const nn::Model& model);

}  // namespace mylos::app
