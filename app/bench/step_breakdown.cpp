#include "app/bench/step_breakdown.hpp"

#include "app/bench/gemm_timing.hpp"
#include "core/base/error.hpp"
#include "core/base/median.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::app {
namespace {

using RowKey = std::pair<SpanKind, std::string>;

/// A row's part in one step.
struct Part {
  SpanTotals totals;
  std::optional<Work> work = Work{};
};

using Parts = std::map<RowKey, Part>;

std::string row_name(const data::BertConfig& model, const Span& span) {
  if (!span.product.empty()) return span.name + ", in a product";
  if (span.kind != SpanKind::product) return span.name;
  const GemmLabel label = parse_gemm_label(span.name).value();
  return fmt::format("{} by {}", product_name(model, label), label.provider);
}

Work times(double count, const Work& work) { return {count * work.flops, count * work.bytes}; }

/// The work of all calls of one span in a step.
std::optional<Work> work_of(const data::BertConfig& model, const ProfiledStep& step, const Span& span,
                            const SpanTotals& totals) {
  const auto calls = static_cast<double>(totals.calls);
  if (span.kind == SpanKind::copy) return Work{0.0, totals.bytes};
  if (span.kind == SpanKind::product) return times(calls, product_work(parse_gemm_label(span.name).value()));
  if (span.product.empty()) return kernel_work(span.name, calls, model, step.shape);
  // A kernel may run several times in a product; what it does there is known for the product as a whole.
  const auto products = static_cast<double>(step.profile.at({SpanKind::product, span.product, {}}).calls);
  const auto work = kernel_work_within(parse_gemm_label(span.product).value(), span.name);
  return work ? std::optional(times(products, *work)) : std::nullopt;
}

Parts parts_of(const data::BertConfig& model, const ProfiledStep& step) {
  Parts parts;
  for (const auto& [span, totals] : step.profile) {
    Part& part = parts[{span.kind, row_name(model, span)}];
    part.totals.calls += totals.calls;
    part.totals.seconds += totals.seconds;
    if (span.kind == SpanKind::section) continue;
    const std::optional<Work> work = work_of(model, step, span, totals);
    if (!work || !part.work) {
      part.work.reset();
    } else {
      part.work->flops += work->flops;
      part.work->bytes += work->bytes;
    }
  }
  return parts;
}

/// What one row was in each step.
struct Samples {
  std::vector<double> calls, seconds, shares;
  std::vector<double> flops, bytes, flop_rates, byte_rates, rooflines;
  bool has_work = true;

  void add(const Part& part, double step_seconds, const Ceilings& ceilings) {
    calls.push_back(static_cast<double>(part.totals.calls));
    seconds.push_back(part.totals.seconds);
    shares.push_back(part.totals.seconds / step_seconds);
    has_work = has_work && part.work;
    if (!has_work || part.totals.seconds <= 0.0) return;
    flops.push_back(part.work->flops);
    bytes.push_back(part.work->bytes);
    flop_rates.push_back(flops.back() / part.totals.seconds);
    byte_rates.push_back(bytes.back() / part.totals.seconds);
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

/// Share of a step's time that its profile has, with or without sections of host code.
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

}  // namespace

Breakdown make_breakdown(const data::BertConfig& model, const std::vector<ProfiledStep>& steps,
                         const Ceilings& ceilings) {
  require(!steps.empty(), "breakdown: no steps");
  std::vector<Parts> parts;
  Parts all;
  std::vector<double> seconds, in_kernels, accounted;
  for (const ProfiledStep& step : steps) {
    parts.push_back(parts_of(model, step));
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
      samples.add(found == parts[i].end() ? Part{} : found->second, steps[i].seconds, ceilings);
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
  return text + fmt::format("sum: {:.1f} % in kernels, {:.1f} % with the host's work, of {:.3f} ms\n",
                            100.0 * breakdown.in_kernels, 100.0 * breakdown.accounted, 1e3 * breakdown.seconds);
}

}  // namespace mylos::app
