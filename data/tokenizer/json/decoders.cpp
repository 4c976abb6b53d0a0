
#include "data/tokenizer/json/stages.hpp"

#include <array>
#include <utility>

#include "core/base/text/unicode.hpp"
#include "data/tokenizer/json/byte_characters.hpp"
#include "data/tokenizer/json/regular_expression.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";  // U+FFFD

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Mends what splitting into words does to English, as BERT's decoder.
void clean_up(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> changes = {{{" .", "."},
                                                                                      {" ?", "?"},
                                                                                      {" !", "!"},
                                                                                      {" ,", ","},
                                                                                      {" ' ", "'"},
                                                                                      {" n't", "n't"},
                                                                                      {" 'm", "'m"},
                                                                                      {" do not", " don't"},
                                                                                      {" 's", "'s"},
                                                                                      {" 've", "'ve"},
                                                                                      {" 're", "'re"}}};
  for (const auto& [from, to] : changes) replace_all(text, from, to);
}

/// Returns the length of what begins a text that is not UTF-8 and is replaced as a whole: the bytes of a character that
/// ends too early, and else one byte.
std::size_t invalid_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  const std::size_t length = first >= 0xF0 && first <= 0xF4  ? 4
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xC2                 ? 2
                                                             : 1;
  if (first > 0xF4 || length == 1) return 1;
  const unsigned lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < lowest || byte(1) > highest) return 1;
  std::size_t end = 2;
  while (end < length && (byte(end) & 0xC0U) == 0x80U) ++end;
  return end;
}

/// Returns bytes as UTF-8, with U+FFFD for what is not.
std::string lossy_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t valid = first_invalid_utf8(bytes).value_or(bytes.size());
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text += replacement_character;
    bytes.remove_prefix(invalid_length(bytes));
  }
  return text;
}

Decoder read_byte_decoder(const Json&, const JsonLocation&) {
  return [](Texts& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) append_token_bytes(token, bytes);
    tokens = {lossy_text(bytes)};
  };
}

Decoder read_word_piece(const Json& json, const JsonLocation& location) {
  const std::string prefix = string_or(json, "prefix", "##", location);
  const bool cleans = bool_or(json, "cleanup", true, location);
  return [=](Texts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix)) {
        tokens[i].erase(0, prefix.size());
      } else if (i > 0) {
        tokens[i].insert(0, " ");
      }
      if (cleans) clean_up(tokens[i]);
    }
  };
}

Decoder read_metaspace_decoder(const Json& json, const JsonLocation& location) {
  const Metaspace metaspace = read_metaspace_fields(json, location);
  std::string mark;
  append_utf8(mark, metaspace.replacement);
  return [metaspace, mark](Texts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark, i == 0 && metaspace.scheme != PrependScheme::never ? "" : " ");
    }
  };
}

Decoder read_byte_fallback(const Json&, const JsonLocation&) {
  return [](Texts& tokens) {
    Texts changed;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (first_invalid_utf8(bytes)) {
        changed.insert(changed.end(), bytes.size(), std::string(replacement_character));
      } else {
        changed.push_back(bytes);
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of_name(token)) {
        bytes.push_back(static_cast<char>(*byte));
        continue;
      }
      flush();
      changed.push_back(std::move(token));
    }
    flush();
    tokens = std::move(changed);
  };
}

Decoder read_fuse(const Json&, const JsonLocation&) {
  return [](Texts& tokens) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  };
}

Decoder read_strip_decoder(const Json& json, const JsonLocation& location) {
  const std::string& content = string_member(json, "content", location);
  if (count_code_points(content) != 1) JsonLocation(location, "content").fail("expected one character");
  const std::size_t start = count_member(json, "start", location);
  const std::size_t stop = count_member(json, "stop", location);
  return [=](Texts& tokens) {
    for (std::string& token : tokens) {
      for (std::size_t i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
      for (std::size_t i = 0; i < stop && token.ends_with(content); ++i) token.resize(token.size() - content.size());
    }
  };
}

Decoder read_replace_decoder(const Json& json, const JsonLocation& location) {
  const Pattern pattern(member(json, "pattern", location), JsonLocation(location, "pattern"));
  const std::string content = string_member(json, "content", location);
  return [=](Texts& tokens) {
    std::vector<Match> parts;
    for (std::string& token : tokens) {
      parts.clear();
      pattern.find(token, parts);
      std::string changed;
      for (const Match& part : parts) {
        changed += part.is_match ? content : token.substr(part.begin, part.end - part.begin);
      }
      token = std::move(changed);
    }
  };
}

Decoder read_bpe(const Json& json, const JsonLocation& location) {
  return [suffix = string_or(json, "suffix", "</w>", location)](Texts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  };
}

Decoder read_decoder_sequence(const Json& json, const JsonLocation& location) {
  return [stages = read_stages(json, "decoders", location, read_decoder)](Texts& tokens) {
    for (const Decoder& stage : stages) stage(tokens);
  };
}

constexpr StageType<Decoder> decoder_types[] = {
    {"ByteLevel", "add_prefix_space trim_offsets use_regex", read_byte_decoder},
    {"WordPiece", "prefix cleanup", read_word_piece},
    {"Metaspace", metaspace_fields, read_metaspace_decoder},
    {"BPEDecoder", "suffix", read_bpe},
    {"ByteFallback", "", read_byte_fallback},
    {"Fuse", "", read_fuse},
    {"Strip", "content start stop", read_strip_decoder},
    {"Replace", "pattern content", read_replace_decoder},
    {"Sequence", "decoders", read_decoder_sequence},
};

void write_spaces(Texts& tokens) {
  for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
}

}  // namespace

Decoder read_decoder(const Json& json, const JsonLocation& location) {
  if (json.is_null()) return write_spaces;
  return read_stage(json, location, decoder_types);
}

}  // namespace mylos::data
