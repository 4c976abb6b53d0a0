#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace mylos {

/// The element type of values and activations. Sums, parameter gradients and master weights are always float.
enum class Precision { float32, bfloat16, float16 };

/// The name in the command line: "float", "bfloat16" or "half".
std::string_view to_string(Precision precision);
/// Returns the precision called `name`; nullopt if there is none.
std::optional<Precision> parse_precision(std::string_view name);

/// Bytes per element.
std::size_t bytes_of(Precision precision);

}  // namespace mylos
