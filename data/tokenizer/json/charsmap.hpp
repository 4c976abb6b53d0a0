#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/aligned_text.hpp"

namespace mylos::data {

/// The charsmap of SentencePiece, as Precompiled holds it: a double array from byte strings to replacements.
class Charsmap {
 public:
  /// Reads base64 of the array's length in bytes, the array, and the replacements, each followed by a zero. Throws at
  /// `location` if it is no base64, too short, or if a replacement is not UTF-8.
  Charsmap(std::string_view base64, const JsonLocation& location);

  /// Replaces each grapheme cluster of less than 6 bytes that the map has, and else each character that it has.
  void normalize(AlignedText& text) const;

 private:
  /// Returns the replacement of the shortest prefix of `part` that the map has.
  std::optional<std::string_view> replacement(std::string_view part) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace mylos::data
