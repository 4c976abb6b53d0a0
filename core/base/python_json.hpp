#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mylos {

/// JSON whose keys stay in the order in which they were set.
using OrderedJson = nlohmann::ordered_json;

/// json.dumps(value) of Python, byte for byte: ASCII only, floats by repr; on one line, or with `indent` spaces a
/// level.
std::string python_json(const OrderedJson& value);
std::string python_json(const OrderedJson& value, int indent);

}  // namespace mylos
