#include "data/tokenizer/json/aligned_text.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::data {

void AlignedText::append(std::string_view bytes, std::span<const CodePointRange> from) {
  text += bytes;
  origins.insert(origins.end(), from.begin(), from.end());
}

void AlignedText::clear() {
  text.clear();
  origins.clear();
}

void ensure_fits(std::size_t bytes, std::span<const CodePointRange> origins) {
  constexpr std::size_t most = std::size_t{1} << 20U;  // of a short text
  constexpr std::size_t most_each = 64;
  if (bytes <= most) return;
  const std::size_t points = origins.empty() ? 0 : origins.back().end - origins.front().begin;
  if (bytes <= most + most_each * points) return;
  throw TextGrowth(fmt::format("makes more than {} bytes of {} characters", most + most_each * points, points));
}

AlignedText aligned(std::string_view text) {
  AlignedText result{.text = std::string(text), .origins = std::vector<CodePointRange>(text.size())};
  unsigned after = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    after += is_continuation(text[i]) ? 0 : 1;
    result.origins[i] = {after - 1, after};
  }
  return result;
}

Rewriter::Rewriter(std::string_view text, std::span<const CodePointRange> origins, AlignedText& out)
    : text_(text), origins_(origins), out_(out) {}

void Rewriter::keep(std::size_t bytes) {
  out_.append(text_.substr(position_, bytes), origins_.subspan(position_, bytes));
  position_ += bytes;
}

void Rewriter::skip() {
  if (!at_end()) decode_code_point(text_, position_);
}

void Rewriter::replace(char32_t c) {
  if (at_end()) return insert(c);
  put(c, origins_[position_]);
  decode_code_point(text_, position_);
}

void Rewriter::insert(char32_t c) {
  const unsigned start = origins_.empty() ? 0 : origins_.front().begin;
  put(c, position_ == 0 ? CodePointRange{start, start} : origins_[position_ - 1]);
}

void Rewriter::put(char32_t c, CodePointRange origin) {
  ensure_fits(out_.text.size(), origins_);
  append_utf8(out_.text, c);
  out_.origins.resize(out_.text.size(), origin);
}

void prepend(AlignedText& text, std::string_view added) {
  if (text.text.empty()) return;
  text.text.insert(0, added);
  const CodePointRange first = text.origins.front();
  text.origins.insert(text.origins.begin(), added.size(), first);
}

std::string_view PiecedText::view(const Piece& piece) const {
  return std::string_view(aligned.text).substr(piece.begin, piece.end - piece.begin);
}

std::span<const CodePointRange> PiecedText::origins(const Piece& piece) const {
  return std::span(aligned.origins).subspan(piece.begin, piece.end - piece.begin);
}

CodePointRange PiecedText::range(std::size_t begin, std::size_t end) const {
  return {aligned.origins[begin].begin, aligned.origins[end - 1].end};
}

}  // namespace mylos::data
