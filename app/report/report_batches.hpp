#pragma once

#include "app/batch/batch_rows.hpp"

#include <string>

namespace mylos::app {

/// Returns the section about the output of `mylos bench batch --json`: speed and memory over the micro-batch, with one
/// curve per mode and recomputation, and the table. Empty if the table has no rows.
std::string batches_html(const BatchTable& table);

}  // namespace mylos::app
