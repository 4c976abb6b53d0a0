#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// The tokenizer of a model's directory, of any kind.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;

  /// Returns the ids of a text without special tokens. Errors: std::runtime_error if the text is not UTF-8.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Returns the text of ids; special tokens produce no text. Errors: std::runtime_error if an id is out of range;
  /// UsageError if this kind of tokenizer cannot decode.
  virtual std::string decode(std::span<const std::int32_t> ids) const;
};

}  // namespace mylos::tasks
