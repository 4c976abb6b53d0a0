#include "app/bench/breakdown_json.hpp"

#include "core/base/files/json.hpp"

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double giga = 1e9;

// Keys shared by the writer and the reader of a row.
constexpr const char* name_key = "name";
constexpr const char* calls_key = "calls";
constexpr const char* seconds_key = "seconds";
constexpr const char* share_key = "share_of_step";
constexpr const char* flops_key = "flops";
constexpr const char* bytes_key = "bytes";
constexpr const char* flop_rate_key = "gflops";
constexpr const char* byte_rate_key = "gbytes_per_second";
constexpr const char* roofline_key = "share_of_roofline";
constexpr const char* kernels_key = "kernels";

OrderedJson optional_json(const std::optional<double>& value, double unit = 1.0) {
  return value ? OrderedJson(*value / unit) : OrderedJson(nullptr);
}

OrderedJson row_json(const BreakdownRow& row) {
  return {{name_key, row.name},
          {calls_key, row.calls},
          {seconds_key, row.seconds},
          {share_key, row.share},
          {flops_key, row.work ? OrderedJson(row.work->flops) : OrderedJson(nullptr)},
          {bytes_key, row.work ? OrderedJson(row.work->bytes) : OrderedJson(nullptr)},
          {flop_rate_key, optional_json(row.flops, giga)},
          {byte_rate_key, optional_json(row.bytes, giga)},
          {roofline_key, optional_json(row.roofline)}};
}

OrderedJson rows_json(const std::vector<BreakdownRow>& rows) {
  OrderedJson all = OrderedJson::array();
  for (const BreakdownRow& row : rows) all.push_back(row_json(row));
  return all;
}

double number(const Json& row, const char* key, const JsonLocation& location) {
  return as_number(member(row, key, location), JsonLocation(location, key));
}

/// Returns nullopt for null, which stands for a figure without a formula.
std::optional<double> optional_number(const Json& row, const char* key, const JsonLocation& location,
                                      double unit = 1.0) {
  if (member(row, key, location).is_null()) return std::nullopt;
  return number(row, key, location) * unit;
}

BreakdownRow read_row(const Json& row, const JsonLocation& location) {
  const auto flops = optional_number(row, flops_key, location), bytes = optional_number(row, bytes_key, location);
  return {.name = string_member(row, name_key, location),
          .calls = number(row, calls_key, location),
          .seconds = number(row, seconds_key, location),
          .share = number(row, share_key, location),
          .work = flops && bytes ? std::optional(Work{*flops, *bytes}) : std::nullopt,
          .flops = optional_number(row, flop_rate_key, location, giga),
          .bytes = optional_number(row, byte_rate_key, location, giga),
          .roofline = optional_number(row, roofline_key, location)};
}

}  // namespace

OrderedJson to_json(const Breakdown& breakdown, const Ceilings& ceilings) {
  return {{"gflops_ceiling", ceilings.flops / giga},
          {"gbytes_per_second_ceiling", ceilings.bandwidth / giga},
          {"seconds", breakdown.seconds},
          {"in_kernels", breakdown.in_kernels},
          {"accounted", breakdown.accounted},
          {kernels_key, rows_json(breakdown.kernels)},
          {"host", rows_json(breakdown.host)}};
}

std::vector<BreakdownRow> kernel_rows(const nlohmann::json& printed, std::string_view name) {
  const JsonLocation top(name), location(top, breakdown_key), list(location, kernels_key);
  const Json& rows = list_member(member(printed, breakdown_key, top), kernels_key, location);
  std::vector<BreakdownRow> all;
  for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(read_row(rows[i], JsonLocation(list, i)));
  return all;
}

}  // namespace mylos::app
