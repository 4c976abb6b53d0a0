#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Builds pages that are both HTML and well-formed XML. Parameters called `html` or `attributes`, and the cells of
/// add_html, are markup and are inserted unchanged. Other text is escaped.
namespace mylos::app {

/// Returns `text` escaped for use between tags and in quoted attributes. Characters that XML does not allow, and bytes
/// that are not UTF-8, become U+FFFD.
std::string escape_html(std::string_view text);

/// Returns `<tag attributes>html</tag>`. `attributes` is empty, or markup such as class="x".
std::string element(std::string_view tag, std::string_view attributes, std::string_view html);
/// Returns the same element with `text`, escaped, as its content.
std::string text_element(std::string_view tag, std::string_view attributes, std::string_view text);

/// Returns the bytes as base64, for `data:` URLs.
std::string base64_text(std::string_view bytes);

/// A table in its own box, which scrolls if the page is too narrow.
class HtmlTable {
 public:
  /// `alignment` has a letter for each column, as in LaTeX: l for texts, r for numbers. The last one is also that of
  /// the columns after it.
  explicit HtmlTable(std::vector<std::string> headings, std::string alignment = "lr")
      : headings_(std::move(headings)), alignment_(std::move(alignment)) {}

  /// Adds a row of text, one cell per column. The first cell is the row's heading.
  void add(const std::vector<std::string>& cells);
  /// Adds a row of markup.
  void add_html(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  const char* class_of(std::size_t column) const;

  std::vector<std::string> headings_;
  std::string alignment_, rows_;
};

/// Returns `value` with four significant digits ("0.0123"), or as a whole number from 10,000 on ("12,345"). Very small
/// and very large numbers have an exponent ("3e-05"). Returns a dash if `value` is not finite.
std::string number_text(double value);
/// Returns `value` with `decimals` decimals: "1.2500". Returns number_text(value) if it is ten million or more, or not
/// finite.
std::string fixed_text(double value, int decimals);
/// Returns a number of bytes as text: "1.23 GiB". Returns a dash if `bytes` is negative, too large or not finite.
std::string size_text(double bytes);

}  // namespace mylos::app
