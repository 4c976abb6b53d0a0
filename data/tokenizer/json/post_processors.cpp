#include "data/tokenizer/json/post_processors.hpp"

#include <algorithm>
#include <utility>

#include "data/tokenizer/bert_unicode.hpp"
#include "data/tokenizer/json/byte_characters.hpp"
#include "data/tokenizer/json/stage_table.hpp"

namespace mylos::data {
namespace {

TokenId read_id(const Json& json, const JsonLocation& location) {
  const std::size_t id = as_count(json, location);
  if (id > 0x7FFFFFFF) location.fail(fmt::format("{} is no id", id));
  return static_cast<TokenId>(id);
}

/// Reads ["</s>", 2].
TokenId read_token(const Json& json, std::string_view key, const JsonLocation& location) {
  const JsonLocation within(location, key);
  const Json& pair = list_member(json, key, location);
  if (pair.size() != 2) within.fail("expected a token and its id");
  return read_id(pair[1], JsonLocation(within, 1));
}

void read_trim(const Json& json, const JsonLocation& location, PostProcessor& processor) {
  if (!bool_or(json, "trim_offsets", true, location)) return;
  processor.trims.push_back({bool_or(json, "add_prefix_space", true, location)});
}

PostProcessor read_byte_processor(const Json& json, const JsonLocation& location) {
  PostProcessor processor;
  read_trim(json, location, processor);
  return processor;
}

/// Both texts in special tokens: `first`, text, separator, text, separator.
PostProcessor around(TokenId first, TokenId separator, std::size_t between, std::int32_t second_type) {
  const TemplatePart begin{.ids = {first}};
  const TemplatePart end{.ids = {separator}};
  PostProcessor processor;
  processor.single = {begin, TemplatePart{}, end};
  processor.pair = *processor.single;
  for (std::size_t i = 1; i < between; ++i) processor.pair->push_back(end);
  processor.pair->push_back({.ids = {}, .sequence = 1, .type = second_type});
  processor.pair->push_back({.ids = {separator}, .sequence = 0, .type = second_type});
  return processor;
}

PostProcessor read_bert_processing(const Json& json, const JsonLocation& location) {
  return around(read_token(json, "cls", location), read_token(json, "sep", location), 1, 1);
}

PostProcessor read_roberta_processing(const Json& json, const JsonLocation& location) {
  PostProcessor processor = around(read_token(json, "cls", location), read_token(json, "sep", location), 2, 0);
  read_trim(json, location, processor);
  return processor;
}

/// Reads {"SpecialToken": {...}} or {"Sequence": {...}}; `special` has the ids of special tokens by their names.
TemplatePart read_part(const Json& json, const JsonLocation& location, const Json& special,
                       const JsonLocation& special_location) {
  if (as_object(json, location).size() != 1) location.fail("expected one of SpecialToken and Sequence");
  const std::string& kind = json.begin().key();
  const JsonLocation within(location, kind);
  const std::string& name = string_member(json.front(), "id", within);
  TemplatePart part;
  part.type = read_id(member(json.front(), "type_id", within), JsonLocation(within, "type_id"));
  if (kind == "Sequence") {
    if (name != "A" && name != "B") within.fail(fmt::format("the sequence {} is not supported", printable(name)));
    part.sequence = name == "B" ? 1 : 0;
  } else if (kind == "SpecialToken") {
    const JsonLocation named(special_location, name);
    const Json& ids = list_member(member(special, name, special_location), "ids", named);
    for (const Json& id : ids) part.ids.push_back(read_id(id, JsonLocation(named, "ids")));
    if (ids.empty()) named.fail("has no ids");
  } else {
    location.fail(fmt::format("{} is not supported", printable(kind)));
  }
  return part;
}

PostProcessor read_template(const Json& json, const JsonLocation& location) {
  const JsonLocation special_location(location, "special_tokens");
  const Json& special = as_object(member(json, "special_tokens", location), special_location);
  const auto read_parts = [&](std::string_view key, int sequences) {
    Template parts;
    const JsonLocation within(location, key);
    for (const Json& part : list_member(json, key, location)) {
      parts.push_back(read_part(part, JsonLocation(within, parts.size()), special, special_location));
      if (parts.back().sequence >= sequences) within.fail("one text has no sequence B");
    }
    return parts;
  };
  PostProcessor processor;
  processor.single = read_parts("single", 1);
  processor.pair = read_parts("pair", 2);
  return processor;
}

PostProcessor read_processor_sequence(const Json& json, const JsonLocation& location) {
  PostProcessor all;
  for (PostProcessor& one : read_stages(json, "processors", location, read_post_processor)) {
    all.trims.insert(all.trims.end(), one.trims.begin(), one.trims.end());
    if (!one.single) continue;
    if (all.single) location.fail("two post-processors that add special tokens are not supported");
    all.single = std::move(one.single);
    all.pair = std::move(one.pair);
  }
  return all;
}

constexpr StageType<PostProcessor> post_processor_types[] = {
    {"ByteLevel", "add_prefix_space trim_offsets use_regex", read_byte_processor},
    {"RobertaProcessing", "sep cls trim_offsets add_prefix_space", read_roberta_processing},
    {"BertProcessing", "sep cls", read_bert_processing},
    {"TemplateProcessing", "single pair special_tokens", read_template},
    {"Sequence", "processors", read_processor_sequence},
};

/// Returns the number of characters at the start of `text`, or at its end, that are white space or stand for it.
unsigned blanks(std::string_view text, bool at_end) {
  unsigned count = 0;
  while (!text.empty()) {
    const std::string_view character = at_end ? last_character(text) : first_character(text);
    std::size_t end = 0;
    const char32_t c = decode_code_point(character, end);
    if (c != space_character && !is_bert_whitespace(c)) break;
    at_end ? text.remove_suffix(end) : text.remove_prefix(end);
    ++count;
  }
  return count;
}

}  // namespace

PostProcessor read_post_processor(const Json& json, const JsonLocation& location) {
  if (json.is_null()) return {};
  return read_stage(json, location, post_processor_types);
}

bool has_layout(const Template& pair, const PairLayout& layout) {
  Template same = {{.ids = {layout.first}}, {}};
  for (std::size_t i = 0; i < layout.separators; ++i) same.push_back({.ids = {layout.separator}});
  same.push_back({.ids = {}, .sequence = 1, .type = layout.second_type});
  same.push_back({.ids = {layout.separator}, .sequence = 0, .type = layout.second_type});
  return pair == same;
}

void trim_offsets(const OffsetTrim& trim, std::span<const std::string_view> texts, Tokens& tokens) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CodePointRange& range = tokens.offsets[i];
    unsigned leading = blanks(texts[i], false);
    const unsigned trailing = blanks(texts[i], true);
    const bool is_first = i == 0 || range.begin == 0;
    if (is_first && trim.adds_space && leading == 1) leading = 0;
    range.begin = std::min(range.begin + leading, range.end);
    if (trailing > 0 && range.end >= trailing) range.end = std::max(range.end - trailing, range.begin);
  }
}

}  // namespace mylos::data
