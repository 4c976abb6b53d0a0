#include "data/tokenizer/json/regular_expression.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data {
namespace {

/// The number of steps after which a match fails. Texts of a million characters need fewer with the patterns of today.
constexpr std::uint32_t most_steps = 10'000'000;

/// What stands for an escape of Oniguruma in PCRE2, in a class or to be put in one.
struct Escape {
  char letter;
  std::string_view within;
  bool is_negated;
};
constexpr std::string_view word_class = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::array escapes = {Escape{'s', R"(\p{White_Space})", false}, Escape{'S', R"(\P{White_Space})", false},
                                Escape{'w', word_class, false}, Escape{'W', word_class, true}};
/// Escapes that mean the same in both, or a character as it is.
constexpr std::string_view same_escapes = "dDnrtfvaexpPuAzZR0123456789";

/// Rewrites a pattern of Oniguruma's syntax into PCRE2's.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : rest_(pattern) {}

  /// Returns the pattern, or what is not supported in `refused`.
  std::string translate() {
    while (!rest_.empty() && refused.empty()) {
      const char c = rest_.front();
      if (c == '\\' && rest_.size() > 1) {
        translate_escape();
      } else {
        if (in_class_) translate_in_class(c);
        if (!in_class_ && c == '[') begin_class();
        take(1);
      }
    }
    return std::move(out_);
  }

  std::string refused;

 private:
  void take(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void begin_class() {
    in_class_ = true;
    if (rest_.starts_with("[^")) take(1);
    if (rest_.size() > 1 && rest_[1] == ']') take(1);  // a bracket that is a member
  }

  void translate_in_class(char c) {
    if (rest_.starts_with("[:")) return take(1);
    if (c == '[') refused = "a class within a class";
    if (rest_.starts_with("&&")) refused = "&& in a class";
    if (c == ']' && !out_.ends_with(':')) in_class_ = false;
  }

  void translate_escape() {
    const char letter = rest_[1];
    for (const Escape& escape : escapes) {
      if (escape.letter != letter) continue;
      if (in_class_ && escape.is_negated) refused = fmt::format("\\{} in a class", letter);
      out_ +=
          in_class_ ? std::string(escape.within) : fmt::format("[{}{}]", escape.is_negated ? "^" : "", escape.within);
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
    if (rest_.size() < 3 || rest_[2] != '{' || end == std::string_view::npos) return take(2);
    const std::string_view name = rest_.substr(3, end - 3);
    const bool is_script = name.size() > 3 || (name.size() == 3 && name.front() != '^' && name != "Any");
    out_ += fmt::format("{}{{{}{}}}", rest_.substr(0, 2), is_script ? "sc:" : "", name);
    rest_.remove_prefix(end + 1);
  }

  std::string_view rest_;
  std::string out_;
  bool in_class_ = false;
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return printable(reinterpret_cast<const char*>(text.data()));
}

/// What a thread needs for a match.
struct MatchScratch {
  MatchScratch() { pcre2_set_match_limit(context, most_steps); }
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
  Translation translation(pattern);
  const std::string translated = is_text ? pattern : translation.translate();
  if (!translation.refused.empty()) {
    within.fail(fmt::format("the regular expression uses {}, which is not supported", translation.refused));
  }
  try {
    compile(translated, is_text ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    name_ = within.text();
  } catch (const std::runtime_error& error) {
    within.fail(error.what());
  }
}

Pattern::Pattern(std::string_view expression) : name_(expression) {
  compile(Translation(expression).translate(), PCRE2_UCP | PCRE2_MULTILINE);
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
  for (std::size_t begin = 0; begin <= text.size() && match(text, begin, found);) {
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

bool Pattern::match(std::string_view text, std::size_t begin, Match& found) const {
  thread_local const MatchScratch scratch;
  const auto run = [&](std::uint32_t options) {
    return pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                       PCRE2_NO_UTF_CHECK | options, scratch.data, scratch.context);
  };
  int result = run(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) fail(fmt::format("{}: the regular expression fails on a text: {}", name_, message_of(result)));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data);
  found = {ends[0], ends[1], true};
  return true;
}

}  // namespace mylos::data
