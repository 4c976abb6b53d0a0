#include "app/report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace mylos::app {
namespace {

std::string text_row(const std::vector<std::string>& cells, std::span<const std::size_t> widths) {
  std::string text = fmt::format("{:<{}}", cells.front(), widths.front());
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const bool is_remark = cells.size() < widths.size() && i + 1 == cells.size();
    text += is_remark ? " " + cells[i] : fmt::format(" {:>{}}", cells[i], widths[i]);
  }
  return text;
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::string text;
  for (const std::string& cell : cells) {
    if (!text.empty()) text += ',';
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      text += cell;
      continue;
    }
    text += '"';
    for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
    text += '"';
  }
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) {
    text += ' ';
    for (const char c : cell) text += c == '|' ? "\\|" : std::string(1, c == '\n' ? ' ' : c);
    text += " |";
  }
  return text;
}

}  // namespace

std::string table_text(const TextTable& table, TableFormat format) {
  std::vector<std::string> headings;
  std::vector<std::size_t> widths;
  for (const TableColumn& column : table.columns) {
    headings.push_back(column.heading);
    widths.push_back(std::max(column.heading.size(), column.least_width));
  }
  for (const std::vector<std::string>& cells : table.rows) widths.front() = std::max(widths.front(), cells[0].size());
  const auto row = [&](std::vector<std::string> cells) {
    if (format == TableFormat::text) return text_row(cells, widths) + '\n';
    cells.resize(headings.size());
    return (format == TableFormat::csv ? csv_row(cells) : markdown_row(cells)) + '\n';
  };
  std::string text = row(headings);
  if (format == TableFormat::markdown) text += markdown_row(std::vector<std::string>(headings.size(), "---")) + '\n';
  for (const std::vector<std::string>& cells : table.rows) text += row(cells);
  return text;
}

}  // namespace mylos::app
