#pragma once

#include <string_view>

#include "core/base/files/json.hpp"

namespace mylos::data {

/// Where Metaspace writes its character before a text that does not begin with it: nowhere, before the first piece of
/// the text, or before each.
enum class PrependScheme { never, first, always };

/// Metaspace, which writes spaces as another character, as a pre-tokenizer and as a decoder.
struct Metaspace {
  char32_t replacement = 0;
  PrependScheme scheme = PrependScheme::always;
  bool splits = true;
};

inline constexpr std::string_view metaspace_fields = "replacement prepend_scheme split add_prefix_space str_rep";

/// Reads its fields. Throws at `location` if one has another type or value.
Metaspace read_metaspace_fields(const Json& json, const JsonLocation& location);

}  // namespace mylos::data
