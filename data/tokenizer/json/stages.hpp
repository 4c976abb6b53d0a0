#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/aligned_text.hpp"

/// The stages of a tokenizer.json before and after its model.
namespace mylos::data {

/// A normalizer of a tokenizer.json: changes a text. Threads can use the same object.
using Normalizer = std::function<void(AlignedText& text)>;

/// Reads `normalizer`; null is one that does nothing. Throws at `location` if its type is not supported.
Normalizer read_normalizer(const Json& json, const JsonLocation& location);

/// A pre-tokenizer of a tokenizer.json: cuts and changes the pieces of a text that are no added tokens. Threads can use
/// the same object.
using PreTokenizer = std::function<void(PiecedText& text)>;

/// Reads `pre_tokenizer`; null is one that does nothing. Throws at `location` if its type is not supported.
PreTokenizer read_pre_tokenizer(const Json& json, const JsonLocation& location);

/// A decoder of a tokenizer.json: changes the texts of tokens, which are joined in the end. Threads can use the same
/// object.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

/// Reads `decoder`; null is one that writes spaces between tokens. Throws at `location` if its type is not supported.
Decoder read_decoder(const Json& json, const JsonLocation& location);

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
