#include "data/tokenizer/json/metaspace.hpp"

#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {

Metaspace read_metaspace_fields(const Json& json, const JsonLocation& location) {
  const std::u32string replacement = decode_utf8(string_member(json, "replacement", location));
  if (replacement.size() != 1) JsonLocation(location, "replacement").fail("expected one character");
  Metaspace metaspace{.replacement = replacement.front(), .splits = bool_or(json, "split", true, location)};
  const std::string scheme = string_or(json, "prepend_scheme", "always", location);
  if (scheme == "never" || !bool_or(json, "add_prefix_space", true, location)) {
    metaspace.scheme = PrependScheme::never;
  } else if (scheme == "first") {
    metaspace.scheme = PrependScheme::first;
  } else if (scheme != "always") {
    JsonLocation(location, "prepend_scheme").fail(fmt::format("{} is not supported", printable(scheme)));
  }
  return metaspace;
}

}  // namespace mylos::data
