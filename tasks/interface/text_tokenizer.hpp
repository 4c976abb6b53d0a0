#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// The tokenizer of a model's directory, whatever its kind.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;

  /// The ids of a text without special tokens around it. Errors: std::runtime_error where it is not UTF-8.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The text of ids; special tokens give nothing. Errors: std::runtime_error where an id is outside of the tokenizer;
  /// UsageError where this kind of tokenizer does not decode.
  virtual std::string decode(std::span<const std::int32_t> ids) const;
};

}  // namespace mylos::tasks
