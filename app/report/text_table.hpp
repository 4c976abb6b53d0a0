#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Tables of results, for terminals and for other programs.
namespace mylos::app {

enum class TableFormat { text, markdown, csv };

struct TableColumn {
  std::string heading;
  std::size_t least_width = 0;  ///< in text
};

/// A row with fewer cells than columns ends with a remark, such as why there are no figures.
struct TextTable {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Returns the table with its headings. In text, the first column is left-aligned and as wide as its longest cell, and
/// the others are right-aligned. CSV quotes what RFC 4180 wants quoted.
std::string table_text(const TextTable& table, TableFormat format);

}  // namespace mylos::app
