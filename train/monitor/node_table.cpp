#include "train/monitor/node_table.hpp"

#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace mylos::train {
namespace {

constexpr std::size_t most_rows = 8;
constexpr double gibibyte = 1 << 30;

const char* unit_text(Unit unit) {
  switch (unit) {
    case Unit::percent:
      return "%";
    case Unit::bytes:
      return "GiB";
    case Unit::watts:
      return "W";
  }
  return "";
}

/// A column of a table: its heading, then a cell for each row.
using Column = std::vector<std::string>;

/// Appends the columns of `quantities<Reading>` that have a value.
template <class Reading>
void add_columns(std::span<const NodeRow> rows, QuantityStatistics<Reading> NodeRow::*of,
                 const std::function<std::string(const Statistics&, Unit)>& cell, std::vector<Column>& columns) {
  for (std::size_t i = 0; i < quantities<Reading>.size(); ++i) {
    const auto& quantity = quantities<Reading>[i];
    Column column = {fmt::format("{} {}", quantity.heading, unit_text(quantity.unit))};
    bool is_told = false;
    for (const NodeRow& row : rows) {
      const Statistics& statistics = (row.*of)[i];
      is_told = is_told || !statistics.empty();
      column.push_back(statistics.empty() ? "-" : cell(statistics, quantity.unit));
    }
    if (is_told) columns.push_back(std::move(column));
  }
}

/// Returns what reports the power of the nodes, "RAPL"; empty if nothing does.
std::string power_sources(const GpuFollower::Nodes& nodes) {
  std::set<std::string> sources;
  for (const auto& [name, node] : nodes) sources.insert(node.last.power_source);
  sources.erase("");
  return fmt::format("{}", fmt::join(sources, ", "));
}

}  // namespace

std::vector<NodeRow> node_rows(const GpuFollower::Nodes& nodes, const GpuFollower::Gpus& gpus, bool whole) {
  std::map<std::string, NodeRow> rows;
  for (const auto& [name, node] : nodes) {
    NodeRow& row = rows[name];
    whole ? row.node.add(node.whole) : row.node.add(node.last);
  }
  for (const auto& [location, gpu] : gpus) {
    NodeRow& row = rows[location.first];
    ++row.gpus;
    whole ? row.gpu.add(gpu.whole) : row.gpu.add(gpu.last);
  }
  std::vector<NodeRow> all;
  for (auto& [name, row] : rows) {
    row.name = name;
    all.push_back(std::move(row));
  }
  return all;
}

std::string quantity_text(double value, Unit unit) {
  return unit == Unit::bytes ? fmt::format("{:.2f}", value / gibibyte) : fmt::format("{:.0f}", value);
}

std::vector<std::string> node_table(std::span<const NodeRow> rows,
                                    const std::function<std::string(const Statistics&, Unit)>& cell) {
  std::vector<Column> columns = {{"node"}};
  Column gpus = {"GPUs"};
  for (const NodeRow& row : rows) {
    columns[0].push_back(row.name);
    gpus.push_back(fmt::format("{}", row.gpus));
  }
  add_columns(rows, &NodeRow::node, cell, columns);
  const bool has_gpus = std::ranges::any_of(rows, [](const NodeRow& row) { return row.gpus > 0; });
  if (has_gpus) columns.push_back(std::move(gpus));
  add_columns(rows, &NodeRow::gpu, cell, columns);

  std::vector<std::string> lines(rows.size() + 1);
  for (const Column& column : columns) {
    const std::size_t width = std::ranges::max(column, {}, &std::string::size).size();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i] += &column == columns.data() ? fmt::format("{:<{}}", column[i], width)
                                            : fmt::format("  {:>{}}", column[i], width);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) lines[i + 1] += rows[i].note;
  return lines;
}

std::string closing_table(const GpuFollower::Nodes& nodes, const GpuFollower::Gpus& gpus) {
  std::vector<NodeRow> rows = node_rows(nodes, gpus, true);
  if (rows.empty()) return "";
  if (rows.size() > most_rows) {
    NodeRow others{.name = fmt::format("{} others", count_text(rows.size() - most_rows))};
    for (std::size_t i = most_rows; i < rows.size(); ++i) others.add(rows[i]);
    rows.resize(most_rows);
    rows.push_back(std::move(others));
  }
  const std::vector<std::string> lines = node_table(rows, [](const Statistics& values, Unit unit) {
    return fmt::format("{} / {}", quantity_text(values.mean(), unit), quantity_text(values.peak(), unit));
  });
  const std::string sources = power_sources(nodes);
  return fmt::format("mean / peak of each node{}{}\n{}\n", sources.empty() ? "" : "; power by ", sources,
                     fmt::join(lines, "\n"));
}

}  // namespace mylos::train
