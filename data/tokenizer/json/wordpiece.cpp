#include "data/tokenizer/json/wordpiece.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "data/tokenizer/bert_unicode.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t longest_word = 100;  // code points; Hugging Face's max_input_chars_per_word
constexpr std::array<std::string_view, 5> special_tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/// Byte classes for splitting into words. The values are bits, so that OR summarises a run of bytes.
enum ByteKind : unsigned char { letter = 0, other = 1, blank = 2, punctuation = 4 };

struct AsciiTables {
  std::array<unsigned char, 256> kind{};
  std::array<char, 256> lower{};
};

/// `other` means not ASCII, or a control character that the normaliser deletes.
constexpr AsciiTables make_ascii_tables() {
  AsciiTables tables;
  for (unsigned c = 0; c < 256; ++c) {
    const bool is_letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    const bool is_control = c < 0x20 || c >= 0x7F;
    tables.kind[c] = is_letter ? letter : is_blank ? blank : is_control ? other : punctuation;
    tables.lower[c] = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  }
  return tables;
}

constexpr AsciiTables ascii = make_ascii_tables();

constexpr std::string_view continuation = "##";  // begins tokens within a word

std::uint32_t checksum_of(const Vocabulary& vocabulary) {
  std::string tokens;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) tokens += vocabulary.token(static_cast<TokenId>(id)) + '\n';
  return crc32c(std::as_bytes(std::span(tokens)));
}

ByteKind kind_of(char byte) { return static_cast<ByteKind>(ascii.kind[static_cast<unsigned char>(byte)]); }

Normalizer bert_normalizer(const TokenizerOptions& options) {
  const Json json = {{"type", "BertNormalizer"},
                     {"handle_chinese_chars", options.tokenize_chinese_chars},
                     {"strip_accents", options.strip_accents.value_or(options.do_lower_case)},
                     {"lowercase", options.do_lower_case}};
  return read_normalizer(json, JsonLocation("WordPiece"));
}

}  // namespace

/// One call of tokenize: its output and scratch space.
class WordPieceTokenizer::Run {
 public:
  Run(const WordPieceTokenizer& tokenizer, Tokens& tokens) : tokenizer_(tokenizer), tokens_(tokens) {}

  /// Splits `text` at special tokens, which are matched in the raw text, and splits the rest into words.
  void add_text(std::string_view text) {
    std::size_t rest = 0;
    for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at)) {
      const auto* special = tokenizer_.special_at(text.substr(at));
      if (special == nullptr) {
        ++at;
        continue;
      }
      add_segment(text.substr(rest, at - rest));
      const auto length = static_cast<unsigned>(special->first.size());
      push(special->second, {offset_, offset_ + length});
      offset_ += length;
      at += length;
      rest = at;
    }
    add_segment(text.substr(rest));
  }

 private:
  void add_segment(std::string_view text) {
    for (std::size_t position = 0; position < text.size();) {
      const ByteKind kind = kind_of(text[position]);
      if (kind == blank || kind == punctuation) {
        if (kind == punctuation) add_ascii_word(text.substr(position, 1));
        ++offset_;
        ++position;
        continue;
      }
      const std::size_t begin = position;
      unsigned kinds = 0;
      for (unsigned next = kind; next <= other;) {
        kinds |= next;
        if (++position == text.size()) break;
        next = kind_of(text[position]);
      }
      add_run(text.substr(begin, position - begin), kinds == letter);
    }
  }

  /// Adds a run of bytes without ASCII blanks and punctuation.
  void add_run(std::string_view text, bool is_ascii) {
    if (is_ascii) {
      add_ascii_word(text);
      offset_ += static_cast<unsigned>(text.size());
    } else {
      add_unicode_run(text);
      offset_ += static_cast<unsigned>(count_code_points(text));
    }
  }

  void add_ascii_word(std::string_view word) {
    const auto length = static_cast<unsigned>(word.size());
    if (word.size() > longest_word) return push(tokenizer_.vocabulary_.unknown(), {offset_, offset_ + length});
    std::array<char, longest_word> lowered;
    if (tokenizer_.lower_case_) {
      for (std::size_t i = 0; i < word.size(); ++i) lowered[i] = ascii.lower[static_cast<unsigned char>(word[i])];
      word = {lowered.data(), word.size()};
    }
    match_word(word, [this](std::size_t begin, std::size_t end) {
      return CodePointRange{offset_ + static_cast<unsigned>(begin), offset_ + static_cast<unsigned>(end)};
    });
  }

  /// Normalizing a text in parts does not change the result if each begins and ends at ASCII characters.
  void add_unicode_run(std::string_view text) {
    AlignedText run = aligned(text);
    tokenizer_.normalizer_(run);
    for (std::size_t position = 0; position < run.text.size();) {
      const std::size_t begin = position;
      const char32_t c = decode_code_point(run.text, position);
      const bool is_blank = is_bert_whitespace(c);
      const bool is_alone = is_blank || is_bert_punctuation(c);
      if (is_alone) flush_word();
      if (!is_blank) extend_word(std::string_view(run.text).substr(begin, position - begin), run.origins[begin]);
      if (is_alone) flush_word();
    }
    flush_word();
  }

  /// Appends a character that comes from the code points `origin` of the run.
  void extend_word(std::string_view character, CodePointRange origin) {
    word_ += character;
    origins_.resize(word_.size(), {offset_ + origin.begin, offset_ + origin.end});
    ++word_code_points_;
  }

  void flush_word() {
    if (word_.empty()) return;
    if (word_code_points_ > longest_word) {
      push(tokenizer_.vocabulary_.unknown(), {origins_.front().begin, origins_.back().end});
    } else {
      match_word(word_, [this](std::size_t begin, std::size_t end) {
        return CodePointRange{origins_[begin].begin, origins_[end - 1].end};
      });
    }
    word_.clear();
    origins_.clear();
    word_code_points_ = 0;
  }

  /// Matches greedily, the longest token first, from the left. Adds one [UNK] for the whole word if any remainder has
  /// no match. `offsets(begin, end)` returns the original code points of bytes [begin, end) of the word.
  template <class Offsets>
  void match_word(std::string_view word, const Offsets& offsets) {
    const std::size_t before = tokens_.ids.size();
    const TokenTrie& trie = tokenizer_.vocabulary_.trie();
    TokenTrie::Node start = TokenTrie::root;
    for (std::size_t begin = 0; begin < word.size();) {
      const auto match = start == TokenTrie::no_node ? TokenTrie::Match{} : trie.longest_match(start, word, begin);
      if (match.id < 0) {
        tokens_.ids.resize(before);
        tokens_.offsets.resize(before);
        return push(tokenizer_.vocabulary_.unknown(), offsets(0, word.size()));
      }
      push(match.id, offsets(begin, match.end));
      begin = match.end;
      start = tokenizer_.continuation_;
    }
  }

  void push(TokenId id, CodePointRange range) {
    tokens_.ids.push_back(id);
    tokens_.offsets.push_back(range);
  }

  const WordPieceTokenizer& tokenizer_;
  Tokens& tokens_;
  unsigned offset_ = 0;  // code points of the text before the current position
  std::string word_;
  std::vector<CodePointRange> origins_;  // for every byte of word_
  std::size_t word_code_points_ = 0;
};

WordPieceTokenizer::WordPieceTokenizer(Vocabulary vocabulary, TokenizerOptions options)
    : vocabulary_(std::move(vocabulary)),
      identity_{vocabulary_.size(), wordpiece_checksum(checksum_of(vocabulary_), options)},
      lower_case_(options.do_lower_case),
      normalizer_(bert_normalizer(options)),
      continuation_(vocabulary_.trie().find_node(continuation)) {
  for (const std::string_view token : special_tokens) {
    if (const auto id = vocabulary_.find(token)) specials_.emplace_back(token, *id);
  }
}

const std::pair<std::string_view, TokenId>* WordPieceTokenizer::special_at(std::string_view text) const {
  for (const auto& special : specials_) {
    if (text.starts_with(special.first)) return &special;
  }
  return nullptr;
}

void WordPieceTokenizer::tokenize(std::string_view text, Tokens& tokens) const {
  ensure_utf8(text, "the text to tokenize");
  Run(*this, tokens).add_text(text);
}

std::string WordPieceTokenizer::token(TokenId id) const { return vocabulary_.token(id); }

bool WordPieceTokenizer::continues_word(TokenId id) const { return vocabulary_.token(id).starts_with(continuation); }

std::optional<TokenId> WordPieceTokenizer::special(SpecialToken role) const {
  switch (role) {
    case SpecialToken::first:
      return vocabulary_.classify();
    case SpecialToken::separator:
      return vocabulary_.separator();
    case SpecialToken::padding:
      return vocabulary_.padding();
    case SpecialToken::mask:
      return vocabulary_.find("[MASK]");
    case SpecialToken::unknown:
      return vocabulary_.unknown();
    case SpecialToken::end:
      break;
  }
  return std::nullopt;
}

}  // namespace mylos::data
