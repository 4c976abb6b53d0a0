#pragma once

#include "data/tokenizer/sentencepiece.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mylos::tasks {

/// The text of a continuation. Tokens are decoded together with the prompt before them: the first token of a text loses
/// its leading space, and a character may be made of several tokens.
class GeneratedText {
 public:
  /// The ids of the prompt's text, without BOS. `tokenizer` outlives it.
  GeneratedText(const data::SentencePieceTokenizer& tokenizer, std::span<const data::TokenId> prompt);

  /// Appends a token; one that the tokenizer has no piece for (padding of the vocabulary) gives no text.
  void append(data::TokenId id);
  /// The text of all tokens that were appended.
  std::string text() const;
  /// The text of the tokens since the last call, but for a last character that more tokens may complete. After the last
  /// token, `is_whole` gives that as well. Decodes only these tokens.
  std::string take_more(bool is_whole);

 private:
  /// Decodes from token `index` on. There is text before it.
  void begin_from(std::size_t index);
  /// Trailing tokens that are the first bytes of a character.
  std::size_t open_bytes() const;

  const data::SentencePieceTokenizer& tokenizer_;
  std::vector<data::TokenId> ids_;
  std::string prompt_;
  std::size_t begin_ = 0;  ///< of the tokens whose text was not taken yet
  /// Stands for the tokens before `begin_` when those after it are decoded: one token, or none while there is no text.
  std::vector<data::TokenId> context_;
  std::string context_text_;
};

}  // namespace mylos::tasks
