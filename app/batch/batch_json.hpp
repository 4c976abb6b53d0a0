#pragma once

#include "app/batch/batch_rows.hpp"
#include "core/base/json.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

/// The table of `mylos bench batch` as JSON, which `mylos report --batches` reads again.
namespace mylos::app {

nlohmann::ordered_json to_json(const BatchTable& table);

/// The table in `printed`, called `name` in errors. Errors: std::runtime_error naming the member that is not there or
/// is of another kind.
BatchTable read_batch_table(const mylos::Json& printed, std::string_view name);

}  // namespace mylos::app
