#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/json.hpp"

namespace mylos::data {

/// A part of a text, and whether a pattern matches it.
struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_match = false;
};

/// A pattern of a tokenizer.json: {"String": ...} or {"Regex": ...}. Immutable, so threads can use the same object.
class Pattern {
 public:
  /// Reads a pattern. Throws at `location` if it is none, if it does not compile, and if it uses what Oniguruma, for
  /// whose syntax such patterns are written, reads in another way than PCRE2.
  Pattern(const Json& json, const JsonLocation& location);
  /// Compiles a regular expression in PCRE2's syntax, which nearly all of Python's is. Throws std::runtime_error
  /// without a location if it does not compile. Errors of `find` begin with `name`.
  Pattern(std::string_view expression, std::string name);

  /// Appends the matches in `text`, which must be UTF-8, and the parts between them, from left to right. Throws if a
  /// match, or all of them, need more steps than their limit.
  void find(std::string_view text, std::vector<Match>& parts) const;

 private:
  struct Code;
  void compile(std::string_view pattern, unsigned options);
  bool match(std::string_view text, std::size_t begin, std::uint64_t& budget, Match& found) const;

  std::string name_;  // in errors
  std::shared_ptr<const Code> code_;
};

}  // namespace mylos::data
