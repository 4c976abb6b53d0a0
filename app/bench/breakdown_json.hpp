#pragma once

#include "app/bench/step_breakdown.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string_view>
#include <vector>

/// JSON form of a step's breakdown: `mylos bench step --breakdown --json` writes it, `mylos report --kernels` reads it.
namespace mylos::app {

/// Key of the breakdown in the output of `mylos bench step`.
inline constexpr const char* breakdown_key = "breakdown";

nlohmann::ordered_json to_json(const Breakdown& breakdown, const Ceilings& ceilings);

/// Reads the kernel rows from the output of `mylos bench step --breakdown --json`; errors call it `name`. Errors:
/// std::runtime_error with the location of a key that is missing or has the wrong type.
std::vector<BreakdownRow> kernel_rows(const nlohmann::json& printed, std::string_view name);

}  // namespace mylos::app
