#pragma once

#include <initializer_list>

#include "data/jinja/value.hpp"

namespace mylos::data::jinja {

using Names = std::initializer_list<std::string_view>;
inline bool is_one_of(std::string_view text, Names names) { return std::ranges::find(names, text) != names.end(); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

/// Reads the characters of a template. Its functions throw TemplateError for what they do not find.
class Reader {
 public:
  std::size_t line = 1;  ///< where it is at, also of an error

  explicit Reader(std::string_view source);

 protected:
  std::string_view rest() const;
  char peek(std::size_t ahead = 0) const;
  void advance(std::size_t count);
  void skip_spaces();
  /// Limits how deep the parser recurses, and so how deep code nests.
  void enter();
  /// Returns whether a word or symbol, and not a longer one, is next after white space.
  bool is_next(std::string_view text);
  bool accept(std::string_view text);
  void expect(std::string_view text);
  /// Returns whether an item of a list follows, which `close` ends.
  bool has_item(bool is_first, std::string_view close);
  std::string read_name();
  /// Reads text and comments up to the next tag, whose beginning is then next.
  std::string read_text();
  /// Reads the end of a tag and the white space after it that the sign before it or trim_blocks removes.
  void end_tag(std::string_view end);
  std::string read_string();
  /// Reads what follows a backslash in a string, except its last character.
  std::string read_escape();
  /// Reads an integer, or else a real number.
  Json read_number(bool is_index = false);

  std::string source_;
  std::size_t at_ = 0, level_ = 0;
  bool begins_line_ = true;
};

}  // namespace mylos::data::jinja
