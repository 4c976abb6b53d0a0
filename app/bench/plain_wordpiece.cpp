#include "app/bench/plain_wordpiece.hpp"

#include "data/tokenizer/bert_normalizer.hpp"
#include "data/tokenizer/bert_unicode.hpp"

#include <string>
#include <vector>

namespace mylos::app {
namespace {

using Word = std::vector<data::NormalizedChar>;
constexpr std::size_t longest_word = 100;  // code points
constexpr std::string_view special_tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

void push(data::Tokens& tokens, data::TokenId id, CodePointRange range) {
  tokens.ids.push_back(id);
  tokens.offsets.push_back(range);
}

std::string piece_text(const Word& word, std::size_t begin, std::size_t end) {
  std::string text = begin == 0 ? "" : "##";
  for (std::size_t i = begin; i < end; ++i) append_utf8(text, word[i].code_point);
  return text;
}

void add_word(const Word& word, const data::Vocabulary& vocabulary, data::Tokens& tokens) {
  if (word.empty()) return;
  data::Tokens pieces;
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
  if (begin < word.size() || word.size() > longest_word) {
    pieces = {{vocabulary.unknown()}, {{word.front().origin.begin, word.back().origin.end}}};
  }
  for (std::size_t i = 0; i < pieces.ids.size(); ++i) push(tokens, pieces.ids[i], pieces.offsets[i]);
}

/// The special token that `text` begins with; empty where it begins with none.
std::string_view special_at(std::string_view text, const data::Vocabulary& vocabulary) {
  for (const std::string_view token : special_tokens) {
    if (text.starts_with(token) && vocabulary.find(token)) return token;
  }
  return {};
}

/// `text` has no special token; its first code point is number `first`.
void add_segment(std::string_view text, unsigned first, data::BertNormalizer& normalizer,
                 const data::Vocabulary& vocabulary, data::Tokens& tokens) {
  Word word;
  const auto flush = [&] {
    add_word(word, vocabulary, tokens);
    word.clear();
  };
  for (const data::NormalizedChar& c : normalizer.normalize(text, first)) {
    const bool is_blank = data::is_bert_whitespace(c.code_point);
    const bool is_alone = is_blank || data::is_bert_punctuation(c.code_point);
    if (is_alone) flush();
    if (!is_blank) word.push_back(c);
    if (is_alone) flush();
  }
  flush();
}

}  // namespace

data::Tokens plain_tokens(std::string_view text, const data::Vocabulary& vocabulary,
                          const data::TokenizerOptions& options) {
  data::BertNormalizer normalizer(
      {options.do_lower_case, options.strip_accents.value_or(options.do_lower_case), options.tokenize_chinese_chars});
  data::Tokens tokens;
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

}  // namespace mylos::app
