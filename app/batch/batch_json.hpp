#pragma once

#include "app/batch/batch_rows.hpp"
#include "core/base/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string_view>

/// JSON form of the table that `mylos bench batch` prints and `mylos report --batches` reads back.
namespace mylos::app {

nlohmann::ordered_json to_json(const BatchTable& table);

/// Reads a table from `printed`; errors call it `name`. Errors: std::runtime_error naming the member that is missing or
/// has the wrong type.
BatchTable read_batch_table(const mylos::Json& printed, std::string_view name);

}  // namespace mylos::app
