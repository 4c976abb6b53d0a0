#pragma once

#include "app/batch/batch_rows.hpp"

#include <string>
#include <vector>

namespace mylos::app {

/// The table for people: what was asked, a line a row with the fastest marked, the largest micro-batches, and the line
/// to run.
std::string to_text(const BatchTable& table);

/// "3.2 GiB of 8.0 GiB": what a row that does not fit needs.
std::string needed_text(const BatchTable& table, const BatchRow& row);

/// "sharded none 29 (116), layer 152 (608)": one line for each mode.
std::vector<std::string> largest_lines(const BatchTable& table);

/// The sentence that compares the losses of the first step; empty where there are none to compare.
std::string losses_text(const BatchTable& table, double tolerance);

}  // namespace mylos::app
