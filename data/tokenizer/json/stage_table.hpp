#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"

/// Reading the stages of a tokenizer.json: each is null or an object with a type, and a table knows the types.
namespace mylos::data {

/// A type of a stage: its name, the fields that it may have beside `type`, separated by blanks, and how it is read.
template <class Stage>
struct StageType {
  std::string_view name;
  std::string_view fields;
  Stage (*read)(const Json& json, const JsonLocation& location);
};

/// Throws at `location` if the object has a field that is neither `type` nor in `known`: it could change ids.
inline void check_fields(const Json& object, std::string_view known, const JsonLocation& location) {
  for (const auto& item : as_object(object, location).items()) {
    const std::string& key = item.key();
    const auto is_key = [&](std::size_t at) {
      const std::size_t end = at + key.size();
      return (at == 0 || known[at - 1] == ' ') && (end == known.size() || known[end] == ' ');
    };
    std::size_t at = key.find(' ') == std::string::npos && !key.empty() ? known.find(key) : std::string_view::npos;
    while (at != std::string_view::npos && !is_key(at)) at = known.find(key, at + 1);
    if (key == "type" || at != std::string_view::npos) continue;
    location.fail(fmt::format("the field {} is not supported", printable(key)));
  }
}

/// Reads a stage by its row of the table. Throws at `location` if the type or a field is not supported.
template <class Stage, std::size_t Size>
Stage read_stage(const Json& json, const JsonLocation& location, const StageType<Stage> (&types)[Size]) {
  const std::string& name = string_member(json, "type", location);
  for (const StageType<Stage>& type : types) {
    if (type.name != name) continue;
    check_fields(json, type.fields, location);
    return type.read(json, location);
  }
  location.fail(fmt::format("the type {} is not supported", printable(name)));
}

/// Reads each element of a list of stages.
template <class Stage>
std::vector<Stage> read_stages(const Json& json, std::string_view key, const JsonLocation& location,
                               Stage (*read)(const Json&, const JsonLocation&)) {
  std::vector<Stage> stages;
  const JsonLocation within(location, key);
  for (const Json& element : list_member(json, key, location)) {
    stages.push_back(read(element, JsonLocation(within, stages.size())));
  }
  return stages;
}

/// Return the value of a field; `absent` if it is absent or null.
inline bool bool_or(const Json& json, std::string_view key, bool absent, const JsonLocation& location) {
  const Json* value = find_member(json, key, location);
  return value == nullptr || value->is_null() ? absent : as_bool(*value, JsonLocation(location, key));
}
inline std::string string_or(const Json& json, std::string_view key, std::string_view absent,
                             const JsonLocation& location) {
  const Json* value = find_member(json, key, location);
  return value == nullptr || value->is_null() ? std::string(absent) : as_string(*value, JsonLocation(location, key));
}

}  // namespace mylos::data
