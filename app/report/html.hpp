#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Builds pages that are both HTML and well-formed XML. Parameters called `html` are markup; everything else is text
/// and is escaped.
namespace mylos::app {

/// Returns `text` escaped for use between tags and in quoted attributes. Characters that XML does not allow, and bytes
/// that are not UTF-8, become U+FFFD.
std::string escape_html(std::string_view text);

/// Returns `<tag attributes>html</tag>`; attributes are markup: class="x".
std::string element(std::string_view tag, std::string_view attributes, std::string_view html);
/// Returns the same element around text.
std::string text_element(std::string_view tag, std::string_view attributes, std::string_view text);

/// Returns the bytes as base64, for `data:` URLs.
std::string base64_text(std::string_view bytes);

/// A table in its own box, which scrolls if the page is too narrow.
class HtmlTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row of text, one cell per column. The first cell is the row's heading.
  void add(const std::vector<std::string>& cells);
  /// Adds a row of markup.
  void add_html(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

/// Returns "1,234", "0.0123", "3e-05": a number with four digits; a dash if it is not finite.
std::string number_text(double value);
/// Returns "1.2500": a number with that many decimals; larger numbers as in number_text().
std::string fixed_text(double value, int decimals);
/// Returns "1.23 GiB" for a number of bytes; a dash if it is not a valid size.
std::string size_text(double bytes);

}  // namespace mylos::app
