#include "data/tokenizer/json/regular_expression.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8  // NOLINT(readability-identifier-naming): the library's name
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data {
namespace {

/// Bounds of the work for a match, and for a text: so many steps for each byte, and for each byte that a short text
/// lacks. The patterns of today need fewer than 20 a byte.
constexpr std::uint32_t most_steps = 1U << 20U;
constexpr std::uint32_t first_steps = 1024;  // that a match may take beside those of the text
constexpr std::uint64_t steps_per_byte = 1000;
constexpr std::uint64_t short_text = 100;

/// The translation of an escape of Oniguruma to PCRE2: `within` a class; outside of one, `beside` is meant too.
struct Escape {
  char letter;
  std::string_view within;
  std::string_view beside;
  bool is_negated;
};
constexpr std::string_view word_class = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view word_digits = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::array escapes = {
    Escape{'s', R"(\p{White_Space})", "", false}, Escape{'S', R"(\P{White_Space})", "", false},
    Escape{'w', word_class, word_digits, false}, Escape{'W', word_class, word_digits, true}};
/// Escapes that mean the same in both, or a character as it is.
constexpr std::string_view same_escapes = "dDnrtfaexpPuAzZR0123456789";

/// Rewrites a pattern of Oniguruma's syntax into PCRE2's.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : rest_(pattern) {}

  /// Returns the pattern, or what is not supported in `refused`.
  std::string translate() {
    while (!rest_.empty() && refused.empty()) {
      const char c = rest_.front();
      if (classes_ == 0 && !is_continuation(c) && std::string_view("{*+?").find(c) == std::string_view::npos) {
        atom_ = out_.size();
      }
      if (ignores_case_) check_letter();
      if (c == '\\' && rest_.size() > 1) {
        translate_escape();
      } else if (classes_ > 0) {
        translate_in_class(c);
      } else if (c == '[') {
        begin_class();
      } else if (c == '(') {
        begin_group();
      } else if (c == ')') {
        end_group();
      } else if (c == '{') {
        translate_braces();
      } else {
        take(1);
      }
    }
    return std::move(out_);
  }

  std::string refused;

 private:
  struct Group {
    std::size_t begin;
    bool ignores_case;  // outside of it
  };

  void take(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void begin_class() {
    classes_ = 1;
    if (rest_.starts_with("[^")) take(1);
    if (rest_.size() > 1 && rest_[1] == ']') take(1);  // a bracket that is a member
    take(1);
  }

  /// Leaves out the brackets of a class within a class, whose members join the others.
  void translate_in_class(char c) {
    for (const auto& [name, members] : {std::pair("[:space:]", R"(\p{White_Space})"), std::pair("[:digit:]", "\\d")}) {
      if (!rest_.starts_with(name)) continue;
      out_ += members;
      return rest_.remove_prefix(std::string_view(name).size());
    }
    const std::string_view next = rest_.substr(1, 1);
    const bool opens = c == '[', closes = c == ']';
    if (opens && (next == ":" || next == "^" || next == "]")) refused = fmt::format("[{} within a class", next);
    if (rest_.starts_with("&&")) refused = "&& in a class";
    classes_ += int{opens} - int{closes};
    if (!opens && (!closes || classes_ == 0)) return take(1);
    if (next == "-" || out_.ends_with('-')) refused = "- beside a class within a class";
    rest_.remove_prefix(1);
  }

  /// Refuses what without regard to case matches other numbers of characters in Oniguruma, as "ss" and U+00DF, or other
  /// members of a property.
  void check_letter() {
    const auto letter = [&](std::size_t i) { return i < rest_.size() ? rest_[i] | 0x20 : 0; };
    const bool is_escape = rest_.front() == '\\' && std::string_view("pxu").find(letter(1)) != std::string_view::npos;
    bool joins = false;
    for (const std::string_view pair : {"ss", "ff", "fi", "fl", "st"}) {
      joins |= classes_ == 0 && letter(0) == pair[0] && letter(1) == pair[1];
    }
    const bool is_ascii = static_cast<unsigned char>(rest_.front()) < 0x80;
    if (joins || is_escape || !is_ascii)
      refused = "(?i) with ss, ff, fi, fl, st, \\p, \\x, \\u or other letters than a-z";
  }

  void begin_group() {
    groups_.push_back({out_.size(), ignores_case_});
    if (rest_.starts_with("(*")) refused = "(*";
    if (!rest_.starts_with("(?")) return take(1);
    for (const std::string_view start : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"}) {
      if (rest_.starts_with(start)) return take(start.size());
    }
    const std::size_t end = rest_.find_first_not_of("im-", 2);
    const char last = end == std::string_view::npos ? '\0' : rest_[end];
    const bool is_whole =
        last == ')' && end > 2 && out_.empty();  // elsewhere it is read as a group to the next bracket
    if (is_whole || (last == ':' && end > 2)) return translate_options(end, is_whole);
    const std::size_t close = rest_.find(')');
    if (rest_.starts_with("(?#") && close != std::string_view::npos && rest_.find('\\') > close) {
      groups_.pop_back();
      return rest_.remove_prefix(close + 1);
    }
    refused = printable(rest_.substr(0, 4));
  }

  /// Oniguruma's option m, by which a point matches the end of a line, is s.
  void translate_options(std::size_t end, bool is_whole) {
    bool is_on = true;
    out_ += "(?";
    for (const char option : rest_.substr(2, end - 2)) {
      if (option == '-') is_on = false;
      if (option == 'i') ignores_case_ = is_on;
      out_ += option == 'm' ? 's' : option;
    }
    if (is_whole) groups_.pop_back();
    rest_.remove_prefix(end);
    take(1);
  }

  void end_group() {
    if (!groups_.empty()) {
      atom_ = groups_.back().begin;
      ignores_case_ = groups_.back().ignores_case;
      groups_.pop_back();
    }
    take(1);
  }

  /// X{2,3}+ and X{2}? repeat what is repeated, unlike in PCRE2.
  void translate_braces() {
    const std::size_t end = std::min(rest_.find('}'), rest_.size() - 1);
    const std::string_view counts = rest_.substr(1, end - 1);
    const std::size_t comma = counts.find(',');
    const bool is_repeat = !counts.empty() && rest_[end] == '}' &&
                           counts.find_first_not_of("0123456789,") == std::string_view::npos &&
                           comma == counts.rfind(',');
    if (!is_repeat) {
      atom_ = out_.size();
      return take(1);
    }
    if (comma == 0) refused = "{,n}";
    const std::string_view after = rest_.substr(end + 1);
    const bool repeats = after.starts_with('+') || (comma == std::string_view::npos && after.starts_with('?'));
    if (repeats) out_.insert(atom_, "(?:");
    take(end + 1);
    if (repeats) out_ += ')';
  }

  void translate_escape() {
    const char letter = rest_[1];
    for (const Escape& escape : escapes) {
      if (escape.letter != letter) continue;
      if (classes_ > 0 && escape.is_negated) refused = fmt::format("\\{} in a class", letter);
      out_ += classes_ > 0 ? std::string(escape.within)
                           : fmt::format("[{}{}{}]", escape.is_negated ? "^" : "", escape.within, escape.beside);
      return rest_.remove_prefix(2);
    }
    if ((letter == 'b' || letter == 'B') && classes_ == 0) {
      const std::string word = fmt::format("[{}{}]", word_class, word_digits);
      out_ += fmt::format("(?{}(?<={word})(?={word})|(?<!{word})(?!{word}))", letter == 'B' ? ":" : "!",
                          fmt::arg("word", word));
      return rest_.remove_prefix(2);
    }
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (is_letter && same_escapes.find(letter) == std::string_view::npos) refused = fmt::format("\\{}", letter);
    if (letter == 'p' || letter == 'P') return translate_property();
    if (letter == 'u' && rest_.size() >= 6) {  // \u0041
      out_ += fmt::format("\\x{{{}}}", rest_.substr(2, 4));
      return rest_.remove_prefix(6);
    }
    take(2);
  }

  /// Names of scripts mean the characters of the script, without those that it shares with others.
  void translate_property() {
    const std::size_t end = rest_.find('}');
    if (rest_.size() < 3 || rest_[2] != '{' || end == std::string_view::npos) {
      refused = fmt::format("{} without braces", rest_.substr(0, 2));
      return;
    }
    const std::string_view name = rest_.substr(3, end - 3);
    const bool is_script = name.size() > 3 || (name.size() == 3 && name.front() != '^' && name != "Any");
    out_ += fmt::format("{}{{{}{}}}", rest_.substr(0, 2), is_script ? "sc:" : "", name);
    rest_.remove_prefix(end + 1);
  }

  std::string_view rest_;
  std::string out_;
  std::size_t atom_ = 0;  // where in `out_` begins what a quantifier would repeat
  std::vector<Group> groups_;
  int classes_ = 0;  // that contain what is next
  bool ignores_case_ = false;
};

/// Returns the pattern in the syntax of PCRE2. Throws if it uses what is read in another way.
std::string translated(std::string_view pattern) {
  Translation translation(pattern);
  std::string text = translation.translate();
  if (translation.refused.empty()) return text;
  fail(fmt::format("the regular expression uses {}, which is not supported", translation.refused));
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return printable(reinterpret_cast<const char*>(text.data()));
}

/// The memory that a thread needs for a match.
struct MatchScratch {
  MatchScratch() = default;
  ~MatchScratch() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;

  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
};

}  // namespace

struct Pattern::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code;
};

Pattern::Pattern(const Json& json, const JsonLocation& location) {
  if (as_object(json, location).size() != 1) location.fail("expected one of String and Regex");
  const bool is_text = json.begin().key() == "String";
  if (!is_text && json.begin().key() != "Regex") location.fail("expected one of String and Regex");
  const JsonLocation within(location, json.begin().key());
  const std::string& pattern = as_string(json.front(), within);
  try {
    compile(is_text ? pattern : translated(pattern), is_text ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    name_ = within.text();
  } catch (const std::runtime_error& error) {
    within.fail(error.what());
  }
}

Pattern::Pattern(std::string_view expression, std::string name) : name_(std::move(name)) {
  compile(expression, PCRE2_UCP);
}

void Pattern::compile(std::string_view pattern, unsigned options) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | options, &error,
                             &offset, nullptr);
  if (code == nullptr) fail(fmt::format("the regular expression does not compile: {}", message_of(error)));
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without a compiler for this processor matches are interpreted
  code_ = std::make_shared<const Code>(code);
}

void Pattern::find(std::string_view text, std::vector<Match>& parts) const {
  std::size_t before = 0;
  std::optional<std::size_t> last;  // the end of the match before
  Match found;
  std::uint64_t budget = steps_per_byte * (text.size() + short_text);
  for (std::size_t begin = 0; begin <= text.size() && !text.empty() && match(text, begin, budget, found);) {
    if (found.begin == found.end && last == found.end) {  // as Oniguruma: no empty match at the end of another
      if (begin == text.size()) break;
      decode_code_point(text, begin);
      continue;
    }
    if (before != found.begin) parts.push_back({before, found.begin, false});
    parts.push_back(found);
    before = begin = found.end;
    last = found.end;
  }
  if (before != text.size()) parts.push_back({before, text.size(), false});
}

/// Seeks a match from `begin` within a number of steps that grows while there is `budget`, from which it is taken.
bool Pattern::match(std::string_view text, std::size_t begin, std::uint64_t& budget, Match& found) const {
  thread_local const MatchScratch scratch;
  const auto run = [&](std::uint32_t options) {
    return pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                       PCRE2_NO_UTF_CHECK | options, scratch.data, scratch.context);
  };
  int result = PCRE2_ERROR_MATCHLIMIT;
  for (std::uint32_t steps = first_steps; result == PCRE2_ERROR_MATCHLIMIT && steps <= most_steps; steps *= 4) {
    if (steps > first_steps && steps > budget) break;
    if (steps > first_steps) budget -= steps;
    pcre2_set_match_limit(scratch.context, steps);
    result = run(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);
  }
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) fail(fmt::format("{}: the regular expression fails on a text: {}", name_, message_of(result)));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data);
  found = {ends[0], ends[1], true};
  return true;
}

}  // namespace mylos::data
