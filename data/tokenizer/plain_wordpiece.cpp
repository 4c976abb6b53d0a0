#include "data/tokenizer/plain_wordpiece.hpp"

#include "data/tokenizer/bert_normalizer.hpp"
#include "data/tokenizer/bert_unicode.hpp"

#include <string>
#include <vector>

namespace mylos::data {
namespace {

using Word = std::vector<NormalizedChar>;
constexpr std::size_t longest_plain_word = 100;  // code points
constexpr std::string_view known_specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

void push(Tokens& tokens, TokenId id, CodePointRange range) {
  tokens.ids.push_back(id);
  tokens.offsets.push_back(range);
}

std::string piece_text(const Word& word, std::size_t begin, std::size_t end) {
  std::string text = begin == 0 ? "" : "##";
  for (std::size_t i = begin; i < end; ++i) append_utf8(text, word[i].code_point);
  return text;
}

void add_word(const Word& word, const Vocabulary& vocabulary, Tokens& tokens) {
  if (word.empty()) return;
  Tokens pieces;
  std::size_t begin = 0;
  for (std::size_t end = word.size(); begin < end;) {
    const auto id = vocabulary.find(piece_text(word, begin, end));
    if (!id) {
      --end;
      continue;
    }
    push(pieces, *id, {word[begin].origin.begin, word[end - 1].origin.end});
    begin = end;
    end = word.size();
  }
  if (begin < word.size() || word.size() > longest_plain_word) {
    pieces = {{vocabulary.unknown()}, {{word.front().origin.begin, word.back().origin.end}}};
  }
  for (std::size_t i = 0; i < pieces.ids.size(); ++i) push(tokens, pieces.ids[i], pieces.offsets[i]);
}

/// Returns the special token at the start of `text`, or an empty string if there is none.
std::string_view special_at(std::string_view text, const Vocabulary& vocabulary) {
  for (const std::string_view token : known_specials) {
    if (text.starts_with(token) && vocabulary.find(token)) return token;
  }
  return {};
}

/// Adds the tokens of `text`, which has no special token and starts at code point number `first`.
void add_segment(std::string_view text, unsigned first, BertNormalizer& normalizer, const Vocabulary& vocabulary,
                 Tokens& tokens) {
  Word word;
  const auto flush = [&] {
    add_word(word, vocabulary, tokens);
    word.clear();
  };
  for (const NormalizedChar& c : normalizer.normalize(text, first)) {
    const bool is_blank = is_bert_whitespace(c.code_point);
    const bool is_alone = is_blank || is_bert_punctuation(c.code_point);
    if (is_alone) flush();
    if (!is_blank) word.push_back(c);
    if (is_alone) flush();
  }
  flush();
}

}  // namespace

Tokens plain_tokens(std::string_view text, const Vocabulary& vocabulary, const TokenizerOptions& options) {
  BertNormalizer normalizer(
      {options.do_lower_case, options.strip_accents.value_or(options.do_lower_case), options.tokenize_chinese_chars});
  Tokens tokens;
  std::size_t segment = 0;
  unsigned first = 0;
  const auto close_segment = [&](std::size_t end) {
    add_segment(text.substr(segment, end - segment), first, normalizer, vocabulary, tokens);
    first += static_cast<unsigned>(count_code_points(text.substr(segment, end - segment)));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view special = special_at(text.substr(at), vocabulary);
    if (special.empty()) {
      ++at;
      continue;
    }
    close_segment(at);
    const auto length = static_cast<unsigned>(special.size());
    push(tokens, *vocabulary.find(special), {first, first + length});
    first += length;
    at += length;
    segment = at;
  }
  close_segment(text.size());
  return tokens;
}

}  // namespace mylos::data
