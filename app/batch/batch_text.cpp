#include "app/batch/batch_text.hpp"

#include "core/base/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::app {
namespace {

std::string four_digits(const std::optional<double>& value, double unit = 1.0) {
  if (!value) return "-";
  const double figure = *value * unit;
  return figure < 1000.0 ? fmt::format("{:.4g}", figure) : fmt::format("{:.0f}", figure);
}

std::string head_text(const BatchTable& table) {
  std::string text = named_line("model", fmt::format("{}, {}", table.model, table.precision));
  text += named_line("batch", fmt::format("{} {} per step on {}, at most {} on each", count_text(table.batch),
                                          table.samples, count_of(table.ranks, "rank"), table.part));
  text += named_line("machine", fmt::format("{}, {} free for a rank", table.machine, bytes_text(table.available)));
  return text + (table.is_measured() ? "" : named_line("rate", table.rate)) + "\n";
}

std::string row_text(const BatchRow& row, bool is_fastest) {
  const std::string note = !row.failure.empty() ? "  " + row.failure
                           : is_fastest         ? "  fastest"
                           : row.fits           ? ""
                                                : "  more than the free memory";
  return fmt::format("{:18} {:10} {:>11} {:>11} {:>5} {:>12} {:>12} {:>10} {:>12}{}\n", to_string(row.setting.mode),
                     nn::to_string(row.setting.recompute), row.setting.micro_batch, row.micro_batches,
                     row.fits ? "yes" : "no", row.planned > 0 ? bytes_text(row.planned) : "-",
                     row.used ? bytes_text(*row.used) : "-", four_digits(row.seconds, 1e3), four_digits(row.rate),
                     note);
}

}  // namespace

std::string needed_text(const BatchTable& table, const BatchRow& row) {
  return fmt::format("{} of {}", bytes_text(row.planned), bytes_text(table.available));
}

std::vector<std::string> largest_lines(const BatchTable& table) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < table.largest.size(); ++i) {
    const LargestBatch& one = table.largest[i];
    const bool begins = i == 0 || table.largest[i - 1].mode != one.mode;
    if (begins) lines.push_back(fmt::format("{}:", to_string(one.mode)));
    const std::string all = table.ranks > 1 ? fmt::format(" ({} on all ranks)", one.samples * table.ranks) : "";
    lines.back() += fmt::format("{} --recompute {} {}", begins ? "" : ",", nn::to_string(one.recompute),
                                one.samples == 0 ? "does not fit" : fmt::format("{}{}", one.samples, all));
  }
  return lines;
}

std::string losses_text(const BatchTable& table, double tolerance) {
  const std::optional<double> difference = loss_difference(table.rows);
  if (!difference) return {};
  const auto count = std::ranges::count_if(table.rows, [](const BatchRow& row) { return row.loss.has_value(); });
  const std::string found = fmt::format("{:.1e} relative over {} rows", *difference, count);
  if (*difference <= tolerance) {
    return fmt::format("agree in the first and in the last step: {}, at most {}", found, tolerance);
  }
  std::string text = fmt::format("differ in the first or in the last step: {}, more than {}", found, tolerance);
  for (const BatchRow& row : table.rows) {
    if (row.loss) text += fmt::format("; {} and {} with {}", *row.loss, *row.last_loss, setting_text(row.setting));
  }
  return text;
}

std::string to_text(const BatchTable& table) {
  std::string text = head_text(table);
  text += fmt::format("{:18} {:10} {:>11} {:>11} {:>5} {:>12} {:>12} {:>10} {:>12}\n", "mode", "recompute",
                      "micro-batch", "accumulated", "fits", "planned", table.is_peak ? "measured" : "resident",
                      "ms a step", table.work + "/s");
  const BatchRow* const fastest = fastest_row(table.rows);
  for (const BatchRow& row : table.rows) text += row_text(row, &row == fastest);
  text +=
      fmt::format("\npredicted largest micro-batch that fits in memory, in {} as long as the longest\n", table.samples);
  for (const std::string& line : largest_lines(table)) text += line + "\n";
  return text;
}

}  // namespace mylos::app
