#pragma once

#include "app/options/arguments.hpp"

namespace mylos::app {

/// Runs `mylos bench batch`: times one step of a constant batch, with micro-batches that double until memory is full,
/// in several modes and with several recomputations. With --plan, predicts the times instead. Returns 1 if nothing
/// fits, a row failed, or the losses of the rows differ.
int bench_batch(const Arguments& arguments);

}  // namespace mylos::app
