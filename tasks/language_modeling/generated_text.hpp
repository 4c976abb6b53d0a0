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
  /// Returns the text of the tokens since the last call, so that all that was returned adds up to text(). Omits tokens
  /// at the end whose text depends on the next token, unless `is_whole` is true, which says that no token follows.
  /// Decodes only these tokens.
  std::string take_more(bool is_whole);

 private:
  std::string decode(std::size_t begin, std::size_t end) const;
  bool has_text(std::size_t index) const;
  void begin_from(std::size_t index);
  /// Returns the number of tokens at the end that form an incomplete character, or a run of bytes that may have no
  /// characters in the end.
  std::size_t open_tokens() const;

  const data::Tokenizer& tokenizer_;
  std::vector<data::TokenId> ids_;
  std::size_t prompt_ = 0;   ///< number of tokens of the prompt
  std::size_t begin_ = 0;    ///< first token whose text has not been taken
  std::size_t context_ = 0;  ///< last token with a text before it, as the first token of a text loses its space
  std::size_t run_ = 0;      ///< number of tokens at the end that are decoded as one, if tokenizer_.joins_bytes()
};

}  // namespace mylos::tasks
