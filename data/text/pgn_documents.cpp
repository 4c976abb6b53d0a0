#include "data/text/pgn_documents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"

namespace mylos::data {
namespace {

constexpr std::string_view event_tag = "[Event ";  // the first tag of a game according to the standard

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// True for bytes of moves: SAN, UCI, drops (N@f3), null moves (--) and figurines, which are not ASCII.
bool is_symbol_byte(char c) {
  constexpr std::string_view signs = "_+#=:-/@";
  return is_digit(c) || is_letter(c) || signs.find(c) != std::string_view::npos ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool is_number(std::string_view symbol) { return std::ranges::all_of(symbol, is_digit); }

bool is_result(std::string_view symbol) { return symbol == "1-0" || symbol == "0-1" || symbol == "1/2-1/2"; }

/// False for signs that evaluate the position, such as "+-", "=" or "±".
bool is_move(std::string_view symbol) {
  return symbol == "--" || std::ranges::any_of(symbol, [](char c) { return is_digit(c) || is_letter(c); });
}

/// True if the quote at `quote` is part of a tag's value, because an odd number of backslashes precedes it.
bool is_escaped(std::string_view line, std::size_t quote) {
  const auto before = line.substr(0, quote);
  const auto last = before.find_last_not_of('\\');
  return (quote - (last == std::string_view::npos ? 0 : last + 1)) % 2 == 1;
}

/// Returns the length of the tag at the start of `line`, up to a quote and a bracket, because values may contain
/// either. 0 if the tag is not closed on the line.
std::size_t tag_length(std::string_view line) {
  for (std::size_t quote = line.find('"'); quote != std::string_view::npos; quote = line.find('"', quote + 1)) {
    const auto close = line.find_first_not_of(" \t", quote + 1);
    if (close != std::string_view::npos && line[close] == ']' && !is_escaped(line, quote)) return close + 1;
  }
  return 0;
}

}  // namespace

bool PgnDocuments::next(Document& document) {
  document.text.clear();
  document.ids.clear();
  document.has_ids = has_game_ = has_event_ = false;
  while (true) {
    while (!rest_.empty()) {
      if (take_token(document) == Game::ended) return true;
    }
    if (next_line()) continue;
    check_closed();
    return has_game_;
  }
}

bool PgnDocuments::next_line() {
  if (!lines_.next(rest_)) return false;
  // Without this check, an open comment would swallow games until the next comment ends.
  if (comment_line_ != 0 && rest_.starts_with(event_tag)) check_closed();
  if (comment_line_ == 0 && rest_.starts_with('%')) rest_ = {};  // the standard's escape for other programs
  return true;
}

PgnDocuments::Game PgnDocuments::take_token(Document& document) {
  if (comment_line_ != 0) {
    skip_comment();
    return Game::goes_on;
  }
  const char first = rest_.front();
  if (is_symbol_byte(first)) return take_symbol(document);
  if (first == '[') return take_tag(document);
  rest_.remove_prefix(1);
  switch (first) {
    case ' ':
    case '\t':
    case '\r':
    case '\v':
    case '\f':
    case '.':
    case '!':
    case '?':
      break;
    case '$':
      rest_.remove_prefix(std::min(rest_.find_first_not_of("0123456789"), rest_.size()));
      break;
    case '{':
      comment_line_ = lines_.number();
      break;
    case ';':
      rest_ = {};
      break;
    case '(':
      variations_.push_back(lines_.number());
      break;
    case ')':
      close_variation();
      break;
    case '*':
      if (!variations_.empty()) break;
      begin_game(document);
      return Game::ended;
    default:
      fail_at(lines_.number(), fmt::format("unexpected '{}'", printable({&first, 1})));
  }
  return Game::goes_on;
}

PgnDocuments::Game PgnDocuments::take_tag(Document& document) {
  if (!variations_.empty()) check_closed();
  const bool is_event = rest_.starts_with(event_tag);
  if (!document.text.empty() || (is_event && has_event_)) return Game::ended;
  const std::size_t length = tag_length(rest_);
  if (length == 0) fail_at(lines_.number(), "the tag is not closed");
  begin_game(document);
  has_event_ = has_event_ || is_event;
  rest_.remove_prefix(length);
  return Game::goes_on;
}

PgnDocuments::Game PgnDocuments::take_symbol(Document& document) {
  const std::string_view symbol = read_symbol();
  if (!variations_.empty() || is_number(symbol) || !is_move(symbol)) return Game::goes_on;
  begin_game(document);
  if (is_result(symbol)) return Game::ended;
  if (!document.text.empty()) document.text += ' ';
  document.text += symbol;
  return Game::goes_on;
}

/// Skips "e.p." after a pawn move, with or without a space, because it is not a move.
std::string_view PgnDocuments::read_symbol() {
  constexpr std::string_view en_passant = "e.p.";
  if (rest_.starts_with(en_passant)) {
    rest_.remove_prefix(en_passant.size());
    return "=";  // an evaluation sign, not a move
  }
  const auto end = std::ranges::find_if_not(rest_, is_symbol_byte);
  std::string_view symbol = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
  rest_.remove_prefix(symbol.size());
  if (symbol.size() > 1 && symbol.ends_with('e') && rest_.starts_with(en_passant.substr(1))) {
    symbol.remove_suffix(1);
    rest_.remove_prefix(en_passant.size() - 1);
  }
  return symbol;
}

void PgnDocuments::skip_comment() {
  const std::size_t end = rest_.find('}');
  if (end != std::string_view::npos) comment_line_ = 0;
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
}

void PgnDocuments::close_variation() {
  if (variations_.empty()) fail_at(lines_.number(), "unexpected ')': no variation is open");
  variations_.pop_back();
}

void PgnDocuments::begin_game(Document& document) {
  if (!has_game_) document.line = lines_.number();
  has_game_ = true;
}

void PgnDocuments::fail_at(std::size_t number, std::string_view problem) const {
  fail(fmt::format("{}: {}", lines_.location(number), problem));
}

void PgnDocuments::check_closed() const {
  if (comment_line_ != 0) fail_at(comment_line_, "the comment is not closed");
  if (!variations_.empty()) fail_at(variations_.back(), "the variation is not closed");
}

}  // namespace mylos::data
