#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Pieces of a page that is HTML and well-formed XML at once. What is called `html` is markup already; everything else
/// is text and is escaped.
namespace mylos::app {

/// `text` as it may stand between tags and in quoted attributes; what XML does not know, and bytes
/// that are no UTF-8, become U+FFFD.
std::string escape_html(std::string_view text);

/// `<tag attributes>html</tag>`; attributes are markup: class="x".
std::string element(std::string_view tag, std::string_view attributes, std::string_view html);
/// The same around text.
std::string text_element(std::string_view tag, std::string_view attributes, std::string_view text);

/// Bytes as base64, for `data:` addresses.
std::string base64_text(std::string_view bytes);

/// A table in a box of its own that scrolls where the page is narrower.
class HtmlTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A row of text, a cell a column. The first cell heads the row.
  void add(const std::vector<std::string>& cells);
  /// The same of markup.
  void add_html(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

/// "1,234", "0.0123", "3e-05": four digits of a number, for people; a dash where it is not finite.
std::string number_text(double value);
/// "1.2500": so many decimals; what is too large for them as number_text().
std::string fixed_text(double value, int decimals);
/// "1.23 GiB", of bytes that were read; a dash where they are no size.
std::string size_text(double bytes);

}  // namespace mylos::app
