#include "app/batch/batch_output.hpp"

#include "core/base/text/quantities.hpp"
#include "train/engine/samples/work_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::app {
namespace {

// Keys shared by the writer and the reader.
constexpr const char* rows_key = "rows";
constexpr const char* largest_key = "largest_micro_batches";
constexpr const char* strategy_key = "mode";
constexpr const char* recompute_key = "recompute";
constexpr const char* micro_batch_key = "micro_batch";
constexpr const char* micro_batches_key = "micro_batches";
constexpr const char* fits_key = "fits";
constexpr const char* planned_key = "planned_memory";
constexpr const char* used_key = "memory";
constexpr const char* step_seconds_key = "step_seconds";
constexpr const char* loss_key = "first_loss";
constexpr const char* last_loss_key = "last_loss";
constexpr const char* failure_key = "failure";
constexpr const char* is_peak_key = "memory_is_peak";

template <class T>
nlohmann::ordered_json optional_value(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json setting_json(parallel::StrategyKind strategy, nn::Recompute recompute, std::size_t micro_batch) {
  return {
      {strategy_key, to_string(strategy)}, {recompute_key, nn::to_string(recompute)}, {micro_batch_key, micro_batch}};
}

nlohmann::ordered_json row_json(const BatchRow& row, const std::string& work, bool is_fastest) {
  nlohmann::ordered_json json = setting_json(row.setting.strategy, row.setting.recompute, row.setting.micro_batch);
  json[micro_batches_key] = row.micro_batches;
  json[fits_key] = row.fits;
  json[planned_key] = row.planned;
  json[used_key] = optional_value(row.used);
  json[step_seconds_key] = optional_value(row.seconds);
  json[train::rate_key(work)] = optional_value(row.rate);
  json[loss_key] = optional_value(row.loss);
  json[last_loss_key] = optional_value(row.last_loss);
  json[failure_key] = row.failure.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(row.failure);
  json["fastest"] = is_fastest;
  return json;
}

/// Returns the value that `parse` reads from the name at `key`.
template <class Parse>
auto parsed_member(const mylos::Json& object, const char* key, const JsonLocation& location, Parse parse) {
  const std::string& text = string_member(object, key, location);
  const auto value = parse(text);
  if (!value) JsonLocation(location, key).fail(fmt::format("there is no \"{}\"", text));
  return *value;
}

BatchSetting read_setting(const mylos::Json& object, const JsonLocation& location) {
  return {.strategy = parsed_member(object, strategy_key, location, parallel::parse_strategy),
          .recompute = parsed_member(object, recompute_key, location, nn::parse_recompute),
          .micro_batch = count_member(object, micro_batch_key, location)};
}

std::optional<double> optional_number_of(const mylos::Json& object, const std::string& key,
                                         const JsonLocation& location) {
  const mylos::Json& value = member(object, key, location);
  return value.is_null() ? std::nullopt : std::optional(as_number(value, JsonLocation(location, key)));
}

BatchRow read_batch_row(const mylos::Json& object, const std::string& work, const JsonLocation& location) {
  BatchRow row{.setting = read_setting(object, location),
               .micro_batches = count_member(object, micro_batches_key, location),
               .fits = as_bool(member(object, fits_key, location), JsonLocation(location, fits_key)),
               .planned = count_member(object, planned_key, location),
               .seconds = optional_number_of(object, step_seconds_key, location),
               .rate = optional_number_of(object, train::rate_key(work), location),
               .loss = optional_number_of(object, loss_key, location),
               .last_loss = optional_number_of(object, last_loss_key, location)};
  if (!member(object, used_key, location).is_null()) row.used = count_member(object, used_key, location);
  if (!member(object, failure_key, location).is_null()) row.failure = string_member(object, failure_key, location);
  return row;
}

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
  return fmt::format("{:18} {:10} {:>11} {:>11} {:>5} {:>12} {:>12} {:>10} {:>12}{}\n", to_string(row.setting.strategy),
                     nn::to_string(row.setting.recompute), row.setting.micro_batch, row.micro_batches,
                     row.fits ? "yes" : "no", row.planned > 0 ? bytes_text(row.planned) : "-",
                     row.used ? bytes_text(*row.used) : "-", four_digits(row.seconds, 1e3), four_digits(row.rate),
                     note);
}

}  // namespace

nlohmann::ordered_json to_json(const BatchTable& table) {
  const BatchRow* const fastest = fastest_row(table.rows);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), largest = rows;
  for (const BatchRow& row : table.rows) rows.push_back(row_json(row, table.work, &row == fastest));
  for (const LargestBatch& one : table.largest) {
    largest.push_back(setting_json(one.strategy, one.recompute, one.samples));
  }
  return {{"model", table.model},
          {"machine", table.machine},
          {"rate", table.rate.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(table.rate)},
          {"work", table.work},
          {"samples", table.samples},
          {"precision", table.precision},
          {"batch", table.batch},
          {"ranks", table.ranks},
          {"nodes", table.nodes},
          {"available", table.available},
          {is_peak_key, table.is_peak},
          {rows_key, rows},
          {largest_key, largest},
          {"loss_difference", optional_value(loss_difference(table.rows))},
          {"recommended", table.line.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(table.line)}};
}

BatchTable read_batch_table(const mylos::Json& printed, std::string_view name) {
  const JsonLocation top(name), rows(top, rows_key), largest(top, largest_key);
  BatchTable table{.model = string_member(printed, "model", top),
                   .machine = string_member(printed, "machine", top),
                   .work = string_member(printed, "work", top),
                   .samples = string_member(printed, "samples", top),
                   .precision = string_member(printed, "precision", top),
                   .batch = count_member(printed, "batch", top),
                   .ranks = count_member(printed, "ranks", top),
                   .nodes = count_member(printed, "nodes", top),
                   .available = count_member(printed, "available", top),
                   .is_peak = as_bool(member(printed, is_peak_key, top), JsonLocation(top, is_peak_key))};
  if (!member(printed, "rate", top).is_null()) table.rate = string_member(printed, "rate", top);
  if (!member(printed, "recommended", top).is_null()) table.line = string_member(printed, "recommended", top);
  const mylos::Json& all = list_member(printed, rows_key, top);
  for (std::size_t i = 0; i < all.size(); ++i) {
    table.rows.push_back(read_batch_row(all[i], table.work, JsonLocation(rows, i)));
  }
  const mylos::Json& limits = list_member(printed, largest_key, top);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const BatchSetting setting = read_setting(limits[i], JsonLocation(largest, i));
    table.largest.push_back({setting.strategy, setting.recompute, setting.micro_batch});
  }
  return table;
}

std::string needed_text(const BatchTable& table, const BatchRow& row) {
  return fmt::format("{} of {}", bytes_text(row.planned), bytes_text(table.available));
}

std::vector<std::string> largest_lines(const BatchTable& table) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < table.largest.size(); ++i) {
    const LargestBatch& one = table.largest[i];
    const bool begins = i == 0 || table.largest[i - 1].strategy != one.strategy;
    if (begins) lines.push_back(fmt::format("{}:", to_string(one.strategy)));
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
