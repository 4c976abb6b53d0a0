#pragma once

#include "app/options/arguments.hpp"

namespace mylos::app {

/// mylos bench batch: one step of a constant batch, in micro-batches that double until memory ends, in several modes
/// and with several recomputations; or with --plan the same predicted. Returns 1 where nothing fits, a row failed, or
/// the rows' losses differ.
int bench_batch(const Arguments& arguments);

}  // namespace mylos::app
