#include "data/jinja/expressions.hpp"

#include <algorithm>
#include <charconv>

namespace mylos::data::jinja {
namespace {

constexpr std::size_t max_level = 100;
constexpr std::string_view spaces = " \t\n\r\v\f";

}  // namespace

Reader::Reader(std::string_view source) {
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') source_ += source[i];
    if (source[i] == '\r' && (i + 1 == source.size() || source[i + 1] != '\n')) source_ += '\n';
  }
  if (source_.ends_with('\n')) source_.pop_back();
}

std::string_view Reader::rest() const { return std::string_view(source_).substr(at_); }

char Reader::peek(std::size_t ahead) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

void Reader::advance(std::size_t count) {
  line += static_cast<std::size_t>(std::ranges::count(rest().substr(0, count), '\n'));
  at_ += count;
}

void Reader::skip_spaces() { advance(std::min(rest().find_first_not_of(spaces), rest().size())); }

void Reader::enter() {
  if (++level_ > max_level) refuse("the template nests deeper than {} levels", max_level);
}

bool Reader::is_next(std::string_view text) {
  skip_spaces();
  if (!rest().starts_with(text)) return false;
  const char next = peek(text.size());
  if (is_letter(text[0])) return !is_letter(next);
  if (is_one_of(text, {"<", ">", "=", "*", "/"})) return next != '=' && next != text[0];
  const auto after = rest().substr(1, 2);  // a sign may belong to the tag's end
  return text == "%" ? next != '}' : !is_one_of(text, {"+", "-"}) || (after != "%}" && after != "}}");
}

bool Reader::accept(std::string_view text) {
  const bool found = is_next(text);
  if (found) advance(text.size());
  return found;
}

void Reader::expect(std::string_view text) {
  if (!accept(text)) refuse("expected '{}'", text);
}

bool Reader::has_item(bool is_first, std::string_view close) {
  if (accept(close)) return false;
  if (!is_first) expect(",");
  return is_first || !accept(close);
}

std::string Reader::read_name() {
  skip_spaces();
  std::string name(rest().begin(), std::ranges::find_if_not(rest(), is_letter));
  if (name.empty() || is_digit(name[0])) refuse("expected a name");
  advance(name.size());
  return name;
}

std::string Reader::read_text() {
  std::string text;
  while (true) {
    std::size_t size = 0;
    while (size < rest().size() && (peek(size) != '{' || !is_one_of(rest().substr(size + 1, 1), {"{", "%", "#"})))
      ++size;
    std::string_view part = rest().substr(0, size);
    advance(size);
    if (peek(2) == '-') {
      part = part.substr(0, part.find_last_not_of(spaces) + 1);
    } else if (peek(2) != '+' && (peek(1) == '%' || peek(1) == '#')) {  // lstrip_blocks
      const std::size_t start = part.rfind('\n') + 1;                   // 0 if there is none
      const bool is_blank = part.find_first_not_of(spaces, start) == std::string_view::npos;
      if (is_blank && (start > 0 || begins_line_)) part = part.substr(0, start);
    }
    text += part;
    if (peek(1) != '#') return text;
    advance(2);
    const std::size_t end = rest().find("#}");
    if (end == std::string_view::npos) refuse("the comment has no end");
    advance(end > 0 && is_one_of(rest().substr(end - 1, 1), {"-", "+"}) ? end - 1 : end);
    end_tag("#}");
  }
}

void Reader::end_tag(std::string_view end) {
  skip_spaces();
  const char sign = peek() == '-' || (peek() == '+' && end != "}}") ? peek() : '\0';
  if (sign != '\0') advance(1);
  if (!rest().starts_with(end)) refuse("expected '{}'", end);
  advance(end.size());
  if (sign == '-') {
    skip_spaces();
  } else if (end != "}}" && sign != '+' && peek() == '\n') {
    advance(1);
  }
  begins_line_ = source_[at_ - 1] == '\n';
}

std::string Reader::read_string() {
  const char quote = peek();
  std::string text;
  advance(1);
  for (; peek() != quote || at_ == source_.size(); advance(1)) {
    if (at_ == source_.size()) refuse("the string has no end");
    if (peek() != '\\') {
      text += peek();
      continue;
    }
    advance(1);
    const std::size_t found = std::string_view("ntr\\'\"").find(peek());
    if (found == std::string_view::npos)
      refuse("an escape of a string other than \\n \\t \\r \\\\ and quotes is not supported");
    text += "\n\t\r\\'\""[found];
  }
  advance(1);
  return text;
}

Json Reader::read_number(bool is_index) {
  std::int64_t integer = 0;
  double real = 0.0;
  const char *const begin = rest().data(), *const end = begin + rest().size();
  const auto whole = std::from_chars(begin, end, integer);
  const auto all = std::from_chars(begin, end, real);
  if (whole.ec != std::errc() || all.ec != std::errc()) refuse("a number has more than 64 bits");
  const bool is_real = all.ptr != whole.ptr && all.ptr[-1] != '.' && !is_index;  // a member may follow the dot
  advance(static_cast<std::size_t>((is_real ? all.ptr : whole.ptr) - begin));
  return is_real ? Json(real) : Json(integer);
}

}  // namespace mylos::data::jinja
