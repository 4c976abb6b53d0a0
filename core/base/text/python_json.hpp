#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mylos {

/// JSON whose keys keep their insertion order.
using OrderedJson = nlohmann::ordered_json;

/// Formats `value` as Python's json.dumps does, byte for byte: ASCII only, floats by repr; on one line, or with
/// `indent` spaces per level.
std::string python_json(const OrderedJson& value);
std::string python_json(const OrderedJson& value, int indent);

}  // namespace mylos
