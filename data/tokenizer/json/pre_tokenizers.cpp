
#include "data/tokenizer/json/stages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "data/tokenizer/bert_unicode.hpp"
#include "data/tokenizer/json/byte_characters.hpp"
#include "data/tokenizer/json/regular_expression.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

/// How a text is cut at the parts that a pattern matches.
enum class Behavior { removed, isolated, contiguous, merged_with_previous, merged_with_next };
struct BehaviorName {
  std::string_view name;
  Behavior behavior;
};
constexpr std::array behavior_names = {BehaviorName{"Removed", Behavior::removed},
                                       BehaviorName{"Isolated", Behavior::isolated},
                                       BehaviorName{"Contiguous", Behavior::contiguous},
                                       BehaviorName{"MergedWithPrevious", Behavior::merged_with_previous},
                                       BehaviorName{"MergedWithNext", Behavior::merged_with_next}};

Behavior read_behavior(const Json& json, const JsonLocation& location) {
  const std::string& name = as_string(json, location);
  for (const BehaviorName& known : behavior_names) {
    if (known.name == name) return known.behavior;
  }
  location.fail(fmt::format("the behavior {} is not supported", printable(name)));
}

/// Whether a part joins the one before it, which is a match or not. With MergedWithNext parts come from the right.
bool joins(Behavior behavior, const Match& part, bool previous) {
  if (behavior == Behavior::contiguous) return part.is_match == previous;
  const bool merges = behavior == Behavior::merged_with_previous || behavior == Behavior::merged_with_next;
  return merges && part.is_match && !previous;
}

/// Appends the pieces that the parts of a piece make. Reverses `parts` for MergedWithNext.
void append_pieces(std::vector<Match>& parts, Behavior behavior, std::size_t offset, std::vector<Piece>& out) {
  const bool backward = behavior == Behavior::merged_with_next;
  if (backward) std::reverse(parts.begin(), parts.end());
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  bool previous = false;
  for (const Match& part : parts) {
    const bool extends = static_cast<std::ptrdiff_t>(out.size()) > first && joins(behavior, part, previous);
    if (extends) {
      backward ? out.back().begin = offset + part.begin : out.back().end = offset + part.end;
    } else if (behavior != Behavior::removed || !part.is_match) {
      out.push_back({offset + part.begin, offset + part.end, -1});
    }
    previous = part.is_match;
  }
  if (backward) std::reverse(out.begin() + first, out.end());
}

/// Cuts each piece by `find(text, parts)`, which gives its parts.
template <class Find>
void cut_pieces(PiecedText& text, Behavior behavior, Find find) {
  std::vector<Match> parts;
  text.split([&](const Piece& piece, std::vector<Piece>& out) {
    parts.clear();
    find(text.view(piece), parts);
    append_pieces(parts, behavior, piece.begin, out);
  });
}

/// Cuts each piece at the characters for which `is_match` is true, each a match of its own.
template <class IsMatch>
void cut_at_characters(PiecedText& text, Behavior behavior, IsMatch is_match) {
  cut_pieces(text, behavior, [&](std::string_view piece, std::vector<Match>& parts) {
    std::size_t before = 0;
    for (std::size_t position = 0; position < piece.size();) {
      const std::size_t begin = position;
      if (!is_match(decode_code_point(piece, position))) continue;
      if (before < begin) parts.push_back({before, begin, false});
      parts.push_back({begin, position, true});
      before = position;
    }
    if (before < piece.size()) parts.push_back({before, piece.size(), false});
  });
}

/// GPT-2's pattern.
const Pattern& byte_level_pattern() {
  static const Json regex{{"Regex", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"}};
  static const Pattern pattern(regex, JsonLocation("ByteLevel"));
  return pattern;
}

/// Rewrites each piece by `change(text)`.
template <class Change>
void change_pieces(PiecedText& text, Change change) {
  AlignedText part;
  text.rewrite([&](const Piece& piece, AlignedText& out) {
    part.clear();
    part.append(text.view(piece), text.origins(piece));
    change(part);
    out.append(part.text, part.origins);
  });
}

PreTokenizer read_byte_pre_tokenizer(const Json& json, const JsonLocation& location) {
  const bool adds_space = bool_or(json, "add_prefix_space", true, location);
  const bool cuts = bool_or(json, "use_regex", true, location);
  return [=](PiecedText& text) {
    if (adds_space) {
      change_pieces(text, [](AlignedText& part) {
        if (!part.text.starts_with(' ')) prepend(part, " ");
      });
    }
    if (cuts) {
      cut_pieces(text, Behavior::isolated,
                 [](std::string_view piece, std::vector<Match>& parts) { byte_level_pattern().find(piece, parts); });
    }
    text.rewrite([&](const Piece& piece, AlignedText& out) {
      append_byte_characters(text.view(piece), text.origins(piece), out);
    });
  };
}

PreTokenizer read_split(const Json& json, const JsonLocation& location) {
  const Pattern pattern(member(json, "pattern", location), JsonLocation(location, "pattern"));
  const Behavior behavior = read_behavior(member(json, "behavior", location), JsonLocation(location, "behavior"));
  const bool inverted = as_bool(member(json, "invert", location), JsonLocation(location, "invert"));
  return [=](PiecedText& text) {
    cut_pieces(text, behavior, [&](std::string_view piece, std::vector<Match>& parts) {
      pattern.find(piece, parts);
      for (Match& part : parts) part.is_match ^= inverted;
    });
  };
}

/// Keeps runs of word characters, and runs of others that are no white space.
PreTokenizer read_whitespace(const Json&, const JsonLocation&) {
  return [](PiecedText& text) {
    cut_pieces(text, Behavior::removed, [](std::string_view piece, std::vector<Match>& parts) {
      enum Kind { none, blank, word, other } last = none;
      for (std::size_t position = 0; position < piece.size();) {
        const std::size_t begin = position;
        const char32_t c = decode_code_point(piece, position);
        const Kind kind = is_word_character(c) ? word : is_bert_whitespace(c) ? blank : other;
        if (kind != last) parts.push_back({begin, begin, kind == blank});
        parts.back().end = position;
        last = kind;
      }
    });
  };
}

PreTokenizer read_whitespace_split(const Json&, const JsonLocation&) {
  return [](PiecedText& text) { cut_at_characters(text, Behavior::removed, is_bert_whitespace); };
}

PreTokenizer read_punctuation(const Json& json, const JsonLocation& location) {
  const Json* named = find_member(json, "behavior", location);
  const Behavior behavior =
      named == nullptr ? Behavior::isolated : read_behavior(*named, JsonLocation(location, "behavior"));
  return [behavior](PiecedText& text) { cut_at_characters(text, behavior, is_bert_punctuation); };
}

PreTokenizer read_digits(const Json& json, const JsonLocation& location) {
  const bool single = bool_or(json, "individual_digits", false, location);
  const Behavior behavior = single ? Behavior::isolated : Behavior::contiguous;
  return [behavior](PiecedText& text) { cut_at_characters(text, behavior, is_numeric); };
}

PreTokenizer read_bert_pre_tokenizer(const Json&, const JsonLocation&) {
  return [](PiecedText& text) {
    cut_at_characters(text, Behavior::removed, is_bert_whitespace);
    cut_at_characters(text, Behavior::isolated, is_bert_punctuation);
  };
}

PreTokenizer read_metaspace_pre_tokenizer(const Json& json, const JsonLocation& location) {
  const Metaspace metaspace = read_metaspace_fields(json, location);
  std::string mark;
  append_utf8(mark, metaspace.replacement);
  return [metaspace, mark](PiecedText& text) {
    text.rewrite([&](const Piece& piece, AlignedText& out) {
      AlignedText part;
      Rewriter rewriter(text.view(piece), text.origins(piece), part);
      while (!rewriter.at_end()) {
        const std::size_t run = std::min(rewriter.rest().find(' '), rewriter.rest().size());
        rewriter.keep(run);
        if (!rewriter.at_end()) rewriter.replace(metaspace.replacement);
      }
      const bool may = metaspace.scheme == PrependScheme::always ||
                       (metaspace.scheme == PrependScheme::first && text.origins(piece).front().begin == 0);
      if (may && !part.text.starts_with(mark)) prepend(part, mark);
      out.append(part.text, part.origins);
    });
    if (!metaspace.splits) return;
    cut_at_characters(text, Behavior::merged_with_next, [&](char32_t c) { return c == metaspace.replacement; });
  };
}

PreTokenizer read_pre_tokenizer_sequence(const Json& json, const JsonLocation& location) {
  return [stages = read_stages(json, "pretokenizers", location, read_pre_tokenizer)](PiecedText& text) {
    for (const PreTokenizer& stage : stages) stage(text);
  };
}

constexpr StageType<PreTokenizer> pre_tokenizer_types[] = {
    {"ByteLevel", "add_prefix_space trim_offsets use_regex", read_byte_pre_tokenizer},
    {"Split", "pattern behavior invert", read_split},
    {"Whitespace", "", read_whitespace},
    {"WhitespaceSplit", "", read_whitespace_split},
    {"Punctuation", "behavior", read_punctuation},
    {"Digits", "individual_digits", read_digits},
    {"BertPreTokenizer", "", read_bert_pre_tokenizer},
    {"Metaspace", metaspace_fields, read_metaspace_pre_tokenizer},
    {"Sequence", "pretokenizers", read_pre_tokenizer_sequence},
};

}  // namespace

Metaspace read_metaspace_fields(const Json& json, const JsonLocation& location) {
  const std::u32string replacement = decode_utf8(string_member(json, "replacement", location));
  if (replacement.size() != 1) JsonLocation(location, "replacement").fail("expected one character");
  Metaspace metaspace{.replacement = replacement.front(), .splits = bool_or(json, "split", true, location)};
  const std::string scheme = string_or(json, "prepend_scheme", "always", location);
  if (scheme == "never" || !bool_or(json, "add_prefix_space", true, location)) {
    metaspace.scheme = PrependScheme::never;
  } else if (scheme == "first") {
    metaspace.scheme = PrependScheme::first;
  } else if (scheme != "always") {
    JsonLocation(location, "prepend_scheme").fail(fmt::format("{} is not supported", printable(scheme)));
  }
  return metaspace;
}

PreTokenizer read_pre_tokenizer(const Json& json, const JsonLocation& location) {
  if (json.is_null()) return [](PiecedText&) {};
  return bounded(read_stage(json, location, pre_tokenizer_types), location.text());
}

}  // namespace mylos::data
