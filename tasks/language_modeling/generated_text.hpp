#pragma once

#include "data/tokenizer/tokenizer.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mylos::tasks {

/// Decodes the text of a continuation. Tokens are decoded together with the prompt, because the first token of a text
/// loses its leading space, and because a character may consist of several tokens.
class GeneratedText {
 public:
  /// `prompt` are the ids of the prompt's text, without BOS. `tokenizer` must outlive this object.
  GeneratedText(const data::Tokenizer& tokenizer, std::span<const data::TokenId> prompt);

  /// Appends a token. A token without a piece in the tokenizer (vocabulary padding) produces no text.
  void append(data::TokenId id);
  /// Returns the text of all appended tokens.
  std::string text() const;
  /// Returns the text of the tokens since the last call. Omits a trailing incomplete character unless `is_whole` is
  /// true, which says that no token follows. Decodes only these tokens.
  std::string take_more(bool is_whole);

 private:
  /// Starts decoding at token `index`, which must be preceded by text.
  void begin_from(std::size_t index);
  /// Returns the number of trailing tokens that form an incomplete character.
  std::size_t open_bytes() const;

  const data::Tokenizer& tokenizer_;
  std::vector<data::TokenId> ids_;
  std::string prompt_;
  std::size_t begin_ = 0;  ///< first token whose text has not been taken
  /// Stands for the tokens before `begin_` when the following tokens are decoded: one token, or empty while there is no
  /// text.
  std::vector<data::TokenId> context_;
  std::string context_text_;
};

}  // namespace mylos::tasks
