
#include "data/tokenizer/json/stages.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "data/tokenizer/bert_unicode.hpp"
#include "data/tokenizer/json/byte_characters.hpp"
#include "data/tokenizer/json/charsmap.hpp"
#include "data/tokenizer/json/regular_expression.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The smallest character that is not the same in NFC, and in other forms. Below, all combining classes are 0.
constexpr char32_t first_mark = 0x300;
constexpr char32_t first_changed = 0xA0;

/// A character of a normal form. `taken` characters of the text end with it: 0 if it is added to those before.
struct FormCharacter {
  char32_t c;
  int combining_class;
  int taken;
};
using FormCharacters = std::vector<FormCharacter>;

bool is_unchanged(std::string_view text, NormalForm form) {
  const char32_t first = form == NormalForm::nfc ? first_mark : first_changed;
  for (std::size_t position = 0; position < text.size();) {
    if (decode_code_point(text, position) >= first) return false;
  }
  return true;
}

FormCharacters decomposed_text(std::string_view text, bool compatible) {
  FormCharacters characters;
  characters.reserve(text.size());
  char32_t parts[max_decomposition];
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t count = decompose(decode_code_point(text, position), parts, compatible);
    for (std::size_t i = 0; i < count; ++i) {
      characters.push_back({parts[i], combining_class(parts[i]), i == 0 ? 1 : 0});
    }
  }
  return characters;
}

/// Sorts each run of marks by combining class. Each keeps how many characters it takes, as in `tokenizers`.
void sort_marks(FormCharacters& characters) {
  const auto is_mark = [](const FormCharacter& c) { return c.combining_class != 0; };
  for (auto first = characters.begin(); first != characters.end();) {
    first = std::find_if(first, characters.end(), is_mark);
    const auto last = std::find_if_not(first, characters.end(), is_mark);
    std::stable_sort(first, last, [](const FormCharacter& a, const FormCharacter& b) {
      return a.combining_class < b.combining_class;
    });
    first = last;
  }
}

/// Composes each starter with the marks after it that are not blocked by others, in place.
void compose_text(FormCharacters& characters) {
  std::size_t size = 0;
  std::size_t starter = characters.size();  // none yet
  int last_class = -1;                      // of what stands between the starter and the next character; -1: nothing
  for (const FormCharacter& next : characters) {
    const bool is_free = starter < size && last_class < next.combining_class;
    const char32_t composed = is_free ? compose(characters[starter].c, next.c) : 0;
    if (composed != 0) {
      characters[starter].c = composed;
      characters[starter].taken += next.taken;
      continue;
    }
    if (next.combining_class == 0) starter = size;
    last_class = next.combining_class == 0 ? -1 : next.combining_class;
    characters[size++] = next;
  }
  characters.resize(size);
}

/// Changes a text into a normal form. Origins are those that `tokenizers` gives: a composed character has the origin of
/// its first code point.
void normalize(AlignedText& text, NormalForm form) {
  if (is_unchanged(text.text, form)) return;
  FormCharacters characters = decomposed_text(text.text, form == NormalForm::nfkc || form == NormalForm::nfkd);
  sort_marks(characters);
  if (form == NormalForm::nfc || form == NormalForm::nfkc) compose_text(characters);
  AlignedText changed;
  Rewriter rewriter(text.text, text.origins, changed);
  for (const FormCharacter& character : characters) {
    if (character.taken == 0) {
      rewriter.insert(character.c);
      continue;
    }
    rewriter.replace(character.c);
    for (int i = 1; i < character.taken; ++i) rewriter.skip();
  }
  text = std::move(changed);
}

/// Calls `change(c, rewriter)` for each character of a text, which consumes it.
template <class Change>
void change_characters(AlignedText& text, Change change) {
  AlignedText changed;
  changed.text.reserve(text.text.size());
  changed.origins.reserve(text.text.size());
  Rewriter rewriter(text.text, text.origins, changed);
  for (std::size_t position = 0; position < text.text.size();) change(decode_code_point(text.text, position), rewriter);
  text = std::move(changed);
}

template <class Drops>
void drop_characters(AlignedText& text, Drops drops) {
  change_characters(text, [&](char32_t c, Rewriter& rewriter) { drops(c) ? rewriter.skip() : rewriter.replace(c); });
}

bool is_plain_ascii(std::string_view text) {
  bool plain = true;
  for (const char c : text) plain &= c >= ' ' && c < 0x7F;
  return plain;
}

void lower_text(AlignedText& text) {
  if (is_plain_ascii(text.text)) {
    for (char& c : text.text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    return;
  }
  change_characters(text, [](char32_t c, Rewriter& rewriter) {
    char32_t lower[2];
    const std::size_t count = to_lower(c, lower);
    rewriter.replace(lower[0]);
    if (count > 1) rewriter.insert(lower[1]);
  });
}

void strip_text(AlignedText& text, bool left, bool right) {
  if (!left && !right) return;
  const auto drop = [&](std::size_t begin, std::size_t end) {
    text.text = text.text.substr(begin, end - begin);
    text.origins = {text.origins.begin() + static_cast<std::ptrdiff_t>(begin),
                    text.origins.begin() + static_cast<std::ptrdiff_t>(end)};
  };
  std::size_t begin = text.text.size();  // of what is no white space
  std::size_t end = 0;
  for (std::size_t position = 0; position < text.text.size();) {
    const std::size_t start = position;
    if (is_bert_whitespace(decode_code_point(text.text, position))) continue;
    begin = std::min(begin, start);
    end = position;
  }
  if (begin > end) return text.clear();
  drop(left ? begin : 0, right ? end : text.text.size());
}

template <NormalForm Form>
Normalizer read_form(const Json&, const JsonLocation&) {
  return [](AlignedText& text) { normalize(text, Form); };
}

Normalizer read_lowercase(const Json&, const JsonLocation&) { return lower_text; }

Normalizer read_strip_accents(const Json&, const JsonLocation&) {
  return [](AlignedText& text) { drop_characters(text, is_combining_mark); };
}

Normalizer read_strip_normalizer(const Json& json, const JsonLocation& location) {
  const bool left = as_bool(member(json, "strip_left", location), JsonLocation(location, "strip_left"));
  const bool right = as_bool(member(json, "strip_right", location), JsonLocation(location, "strip_right"));
  return [left, right](AlignedText& text) { strip_text(text, left, right); };
}

Normalizer read_prepend(const Json& json, const JsonLocation& location) {
  return [added = string_member(json, "prepend", location)](AlignedText& text) { prepend(text, added); };
}

Normalizer read_byte_normalizer(const Json&, const JsonLocation&) {
  return [](AlignedText& text) {
    AlignedText changed;
    append_byte_characters(text.text, text.origins, changed);
    ensure_fits(changed.text.size(), changed.origins);
    text = std::move(changed);
  };
}

Normalizer read_replace_normalizer(const Json& json, const JsonLocation& location) {
  const Pattern pattern(member(json, "pattern", location), JsonLocation(location, "pattern"));
  const std::u32string content = decode_utf8(string_member(json, "content", location));
  return [pattern, content](AlignedText& text) {
    std::vector<Match> parts;
    pattern.find(text.text, parts);
    AlignedText changed;
    Rewriter rewriter(text.text, text.origins, changed);
    std::size_t position = 0;
    for (const Match& part : parts) {
      const std::size_t length = part.end - part.begin;
      if (!part.is_match) {
        rewriter.keep(length);
      } else {
        while (position < part.end) {
          decode_code_point(text.text, position);
          rewriter.skip();
        }
        for (const char32_t c : content) rewriter.insert(c);
      }
      position = part.end;
    }
    text = std::move(changed);
  };
}

Normalizer read_precompiled(const Json& json, const JsonLocation& location) {
  const auto map = std::make_shared<const Charsmap>(string_member(json, "precompiled_charsmap", location),
                                                    JsonLocation(location, "precompiled_charsmap"));
  return [map](AlignedText& text) { map->normalize(text); };
}

void clean_text(AlignedText& text) {
  change_characters(text, [](char32_t c, Rewriter& rewriter) {
    if (is_removed_by_bert(c)) return rewriter.skip();
    rewriter.replace(is_bert_whitespace(c) ? ' ' : c);
  });
}

void space_chinese(AlignedText& text) {
  change_characters(text, [](char32_t c, Rewriter& rewriter) {
    if (!is_chinese(c)) return rewriter.replace(c);
    rewriter.replace(' ');
    rewriter.insert(c);
    rewriter.insert(' ');
  });
}

Normalizer read_bert_normalizer(const Json& json, const JsonLocation& location) {
  const bool cleans = bool_or(json, "clean_text", true, location);
  const bool spaces = bool_or(json, "handle_chinese_chars", true, location);
  const bool lowers = bool_or(json, "lowercase", true, location);
  const bool strips = bool_or(json, "strip_accents", lowers, location);
  return [=](AlignedText& text) {
    if (!is_plain_ascii(text.text)) {
      if (cleans) clean_text(text);
      if (spaces) space_chinese(text);
      if (strips) {
        normalize(text, NormalForm::nfd);
        drop_characters(text, is_nonspacing_mark);
      }
    }
    if (lowers) lower_text(text);
  };
}

Normalizer read_normalizer_sequence(const Json& json, const JsonLocation& location) {
  return [stages = read_stages(json, "normalizers", location, read_normalizer)](AlignedText& text) {
    for (const Normalizer& stage : stages) stage(text);
  };
}

constexpr StageType<Normalizer> normalizer_types[] = {
    {"NFC", "", read_form<NormalForm::nfc>},
    {"NFD", "", read_form<NormalForm::nfd>},
    {"NFKC", "", read_form<NormalForm::nfkc>},
    {"NFKD", "", read_form<NormalForm::nfkd>},
    {"Lowercase", "", read_lowercase},
    {"StripAccents", "", read_strip_accents},
    {"Strip", "strip_left strip_right", read_strip_normalizer},
    {"Prepend", "prepend", read_prepend},
    {"Replace", "pattern content", read_replace_normalizer},
    {"ByteLevel", "", read_byte_normalizer},
    {"BertNormalizer", "clean_text handle_chinese_chars strip_accents lowercase", read_bert_normalizer},
    {"Precompiled", "precompiled_charsmap", read_precompiled},
    {"Sequence", "normalizers", read_normalizer_sequence},
};

}  // namespace

Normalizer read_normalizer(const Json& json, const JsonLocation& location) {
  if (json.is_null()) return [](AlignedText&) {};
  return bounded(read_stage(json, location, normalizer_types), location.text());
}

}  // namespace mylos::data
