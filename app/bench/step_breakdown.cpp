#include "app/bench/step_breakdown.hpp"

#include "app/bench/gemm_timing.hpp"
#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/median.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::app {
namespace {

using RowKey = std::pair<SpanKind, std::string>;

/// The rows of one step.
using Parts = std::map<RowKey, SpanTotals>;

std::string row_name(std::span<const GemmProduct> products, const Span& span) {
  if (!span.product.empty()) return span.name + ", in a product";
  if (span.kind != SpanKind::product) return span.name;
  const GemmLabel label = parse_gemm_label(span.name).value();
  return fmt::format("{} by {}", product_name(products, label), label.provider);
}

Parts parts_of(std::span<const GemmProduct> products, const ProfiledStep& step) {
  Parts parts;
  for (const auto& [span, totals] : step.profile) {
    SpanTotals& part = parts[{span.kind, row_name(products, span)}];
    part.calls += totals.calls;
    part.seconds += totals.seconds;
    part.add_work(totals.work);
  }
  return parts;
}

/// The figures of one row in each step.
struct Samples {
  std::vector<double> calls, seconds, shares;
  std::vector<double> flops, bytes, flop_rates, byte_rates, rooflines;
  bool has_work = true;

  void add(const SpanTotals& part, double step_seconds, const Ceilings& ceilings) {
    calls.push_back(static_cast<double>(part.calls));
    seconds.push_back(part.seconds);
    shares.push_back(part.seconds / step_seconds);
    has_work = has_work && part.work;
    if (!has_work || part.seconds <= 0.0) return;
    flops.push_back(part.work->flops);
    bytes.push_back(part.work->bytes);
    flop_rates.push_back(flops.back() / part.seconds);
    byte_rates.push_back(bytes.back() / part.seconds);
    rooflines.push_back(std::max(flop_rates.back() / ceilings.flops, byte_rates.back() / ceilings.bandwidth));
  }
};

BreakdownRow make_row(const RowKey& key, const Samples& samples) {
  BreakdownRow row{.kind = key.first,
                   .name = key.second,
                   .calls = median(samples.calls),
                   .seconds = median(samples.seconds),
                   .share = median(samples.shares),
                   .work = {},
                   .flops = {},
                   .bytes = {},
                   .roofline = {}};
  if (row.kind == SpanKind::section || !samples.has_work || samples.flops.empty()) return row;
  row.work = Work{median(samples.flops), median(samples.bytes)};
  row.flops = median(samples.flop_rates);
  row.bytes = median(samples.byte_rates);
  row.roofline = median(samples.rooflines);
  return row;
}

/// Returns the fraction of a step's time that its profile covers, with or without sections of host code.
double share_of(const ProfiledStep& step, bool with_host) {
  double seconds = 0.0;
  for (const auto& [span, totals] : step.profile) {
    if (with_host || span.kind != SpanKind::section) seconds += totals.seconds;
  }
  return seconds / step.seconds;
}

std::string number(const std::optional<double>& value, double unit) {
  return value ? fmt::format("{:.1f}", *value * unit) : "-";
}

std::string row_text(const BreakdownRow& row) {
  return fmt::format("{:<60} {:>6.0f} {:>10.3f} {:>6.1f} {:>9} {:>8} {:>7}\n", row.name, row.calls, 1e3 * row.seconds,
                     100.0 * row.share, number(row.flops, 1e-9), number(row.bytes, 1e-9), number(row.roofline, 100.0));
}

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

Breakdown make_breakdown(std::span<const GemmProduct> products, const std::vector<ProfiledStep>& steps,
                         const Ceilings& ceilings) {
  require(!steps.empty(), "breakdown: no steps");
  std::vector<Parts> parts;
  Parts all;
  std::vector<double> seconds, in_kernels, accounted;
  for (const ProfiledStep& step : steps) {
    parts.push_back(parts_of(products, step));
    all.insert(parts.back().begin(), parts.back().end());
    seconds.push_back(step.seconds);
    in_kernels.push_back(share_of(step, false));
    accounted.push_back(share_of(step, true));
  }
  Breakdown breakdown;
  for (const auto& [key, part] : all) {
    auto& rows = key.first == SpanKind::section ? breakdown.host : breakdown.kernels;
    Samples samples;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto found = parts[i].find(key);
      samples.add(found == parts[i].end() ? SpanTotals{} : found->second, steps[i].seconds, ceilings);
    }
    rows.push_back(make_row(key, samples));
  }
  std::ranges::sort(breakdown.kernels, std::ranges::greater(), &BreakdownRow::seconds);
  std::ranges::sort(breakdown.host, std::ranges::greater(), &BreakdownRow::seconds);
  breakdown.seconds = median(seconds);
  breakdown.in_kernels = median(in_kernels);
  breakdown.accounted = median(accounted);
  return breakdown;
}

std::string to_text(const Breakdown& breakdown, const Ceilings& ceilings) {
  std::string text = fmt::format("roofline: {:.1f} GFLOP/s of the fastest product, {:.1f} GB/s of a triad\n",
                                 1e-9 * ceilings.flops, 1e-9 * ceilings.bandwidth);
  text += fmt::format("{:<60} {:>6} {:>10} {:>6} {:>9} {:>8} {:>7}\n", "kernel", "calls", "ms", "% step", "GFLOP/s",
                      "GB/s", "% roof");
  for (const BreakdownRow& row : breakdown.kernels) text += row_text(row);
  text += "not in kernels\n";
  for (const BreakdownRow& row : breakdown.host) text += row_text(row);
  return text + fmt::format("sum: {:.1f} % in kernels, {:.1f} % including work of the host, of {:.3f} ms\n",
                            100.0 * breakdown.in_kernels, 100.0 * breakdown.accounted, 1e3 * breakdown.seconds);
}

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
