#include "app/report/html.hpp"

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/unicode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <cmath>

namespace mylos::app {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

std::string_view markup_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

/// Returns whether the text begins with U+FFFE or U+FFFF, which are not XML characters.
bool begins_with_none(std::string_view utf8) {
  return utf8.starts_with("\xef\xbf\xbe") || utf8.starts_with("\xef\xbf\xbf");
}

void append_escaped(std::string_view utf8, std::string& escaped) {
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    if (begins_with_none(utf8.substr(i))) {
      escaped += replacement;
      i += 2;
      continue;
    }
    const char c = utf8[i];
    const bool is_control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    if (const std::string_view markup = is_control ? replacement : markup_of(c); !markup.empty()) {
      escaped += markup;
    } else {
      escaped += c;
    }
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t valid = first_invalid_utf8(text).value_or(text.size());
    append_escaped(text.substr(0, valid), escaped);
    if (valid < text.size()) escaped += replacement;
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
  return escaped;
}

std::string element(std::string_view tag, std::string_view attributes, std::string_view html) {
  return fmt::format("<{}{}{}>{}</{}>", tag, attributes.empty() ? "" : " ", attributes, html, tag);
}

std::string text_element(std::string_view tag, std::string_view attributes, std::string_view text) {
  return element(tag, attributes, escape_html(text));
}

std::string base64_text(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view three = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < three.size() ? static_cast<std::uint8_t>(three[k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= three.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

void HtmlTable::add(const std::vector<std::string>& cells) {
  std::vector<std::string> escaped;
  for (const std::string& cell : cells) escaped.push_back(escape_html(cell));
  add_html(escaped);
}

/// Returns the attribute of the column's cells.
const char* HtmlTable::class_of(std::size_t column) const {
  return alignment_[std::min(column, alignment_.size() - 1)] == 'r' ? "class=\"n\"" : "";
}

void HtmlTable::add_html(const std::vector<std::string>& cells) {
  require(cells.size() == headings_.size(), fmt::format("{} cells in {} columns", cells.size(), headings_.size()));
  std::string row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    row += i == 0 ? element("th", "scope=\"row\"", cells[i]) : element("td", class_of(i), cells[i]);
  }
  rows_ += element("tr", "", row) + "\n";
}

std::string HtmlTable::html() const {
  std::string head;
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    const std::string_view align = class_of(i);
    head += text_element("th", fmt::format("scope=\"col\"{}{}", align.empty() ? "" : " ", align), headings_[i]);
  }
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n", head,
      rows_);
}

std::string number_text(double value) {
  constexpr double most_with_decimals = 9999.5, least_plain = 1e-3, most_whole = 1e15;
  const double size = std::abs(value);
  if (!std::isfinite(value)) return "\xe2\x80\x93";  // an en dash
  if (size < most_with_decimals || size > most_whole) {
    return size > 0.0 && size < least_plain ? fmt::format("{:.3g}", value) : fmt::format("{:.4g}", value);
  }
  return (value < 0.0 ? "-" : "") + count_text(static_cast<std::size_t>(std::llround(size)));
}

std::string fixed_text(double value, int decimals) {
  constexpr double most = 1e7;
  return std::abs(value) < most ? fmt::format("{:.{}f}", value, decimals) : number_text(value);
}

std::string size_text(double bytes) {
  constexpr double most = 0x1p63;
  return bytes >= 0.0 && bytes < most ? bytes_text(static_cast<std::size_t>(bytes)) : number_text(std::nan(""));
}

}  // namespace mylos::app
