#pragma once

#include "app/bench/step_breakdown.hpp"

#include <nlohmann/json.hpp>

#include <string_view>
#include <vector>

/// The breakdown of a step as JSON: `mylos bench step --breakdown --json` writes it, `mylos report --kernels` reads it.
namespace mylos::app {

/// The key of the breakdown in what `mylos bench step` prints.
inline constexpr const char* breakdown_key = "breakdown";

nlohmann::ordered_json to_json(const Breakdown& breakdown, const Ceilings& ceilings);

/// Reads the kernels' rows from what `mylos bench step --breakdown --json` printed. `name` is the file in errors.
/// Throws one line with the place of a key that is missing or has another type.
std::vector<BreakdownRow> kernel_rows(const nlohmann::json& printed, std::string_view name);

}  // namespace mylos::app
