#pragma once

#include "app/batch/batch_rows.hpp"

#include <string>

namespace mylos::app {

/// The section of the page on what `mylos bench batch --json` printed: speed and memory over the micro-batch, a curve
/// for each mode and recomputation, and the table. Empty where the table has no rows.
std::string batches_html(const BatchTable& table);

}  // namespace mylos::app
