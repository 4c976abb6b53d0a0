#include "app/batch/batch_json.hpp"

#include "app/batch/batch_rows.hpp"
#include "train/engine/work_kind.hpp"

#include <fmt/format.h>

namespace mylos::app {
namespace {

// Keys shared by the writer and the reader.
constexpr const char* rows_key = "rows";
constexpr const char* largest_key = "largest_micro_batches";
constexpr const char* mode_key = "mode";
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

nlohmann::ordered_json setting_json(parallel::ModeKind mode, nn::Recompute recompute, std::size_t micro_batch) {
  return {{mode_key, to_string(mode)}, {recompute_key, nn::to_string(recompute)}, {micro_batch_key, micro_batch}};
}

nlohmann::ordered_json row_json(const BatchRow& row, const std::string& work, bool is_fastest) {
  nlohmann::ordered_json json = setting_json(row.setting.mode, row.setting.recompute, row.setting.micro_batch);
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
  return {.mode = parsed_member(object, mode_key, location, parallel::parse_mode),
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

}  // namespace

nlohmann::ordered_json to_json(const BatchTable& table) {
  const BatchRow* const fastest = fastest_row(table.rows);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), largest = rows;
  for (const BatchRow& row : table.rows) rows.push_back(row_json(row, table.work, &row == fastest));
  for (const LargestBatch& one : table.largest) {
    largest.push_back(setting_json(one.mode, one.recompute, one.samples));
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
    table.largest.push_back({setting.mode, setting.recompute, setting.micro_batch});
  }
  return table;
}

}  // namespace mylos::app
