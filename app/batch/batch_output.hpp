#pragma once

#include "app/batch/batch_rows.hpp"
#include "core/base/files/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

/// The table of `mylos bench batch` as JSON, which `mylos report --batches` reads back, and as text.
namespace mylos::app {

nlohmann::ordered_json to_json(const BatchTable& table);

/// Reads a table from `printed`; errors call it `name`. Errors: std::runtime_error naming the member that is missing or
/// has the wrong type.
BatchTable read_batch_table(const mylos::Json& printed, std::string_view name);

/// Returns the table as text: the setup, one line per row with the fastest marked, the largest micro-batches, and the
/// command line of the fastest run.
std::string to_text(const BatchTable& table);

/// Returns "3.2 GiB of 8.0 GiB": needed and available memory of a row that does not fit.
std::string needed_text(const BatchTable& table, const BatchRow& row);

/// Returns one line per mode: "sharded none 29 (116), layer 152 (608)".
std::vector<std::string> largest_lines(const BatchTable& table);

/// Returns a sentence that compares the losses of the first step; empty if there are none to compare.
std::string losses_text(const BatchTable& table, double tolerance);

}  // namespace mylos::app
