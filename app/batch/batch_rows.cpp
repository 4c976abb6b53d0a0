#include "app/batch/batch_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::app {
namespace {

std::optional<double> spread(const std::vector<BatchRow>& rows, std::optional<double> BatchRow::*loss) {
  std::vector<double> losses;
  for (const BatchRow& row : rows) {
    if (row.*loss) losses.push_back(*(row.*loss));
  }
  if (losses.size() < 2) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(losses);
  return most == least ? 0.0 : (most - least) / std::max(std::abs(least), std::abs(most));
}

}  // namespace

std::vector<std::size_t> tried_micro_batches(std::size_t batch, std::size_t ranks, std::size_t step) {
  // A single left-over image joins the preceding group, so that the largest of n groups has one image more.
  const std::size_t joined = step > 1 && batch > step && batch % step == 1 ? 1 : 0;
  const std::size_t steps = (batch - joined + step - 1) / step;
  const std::size_t part = std::min(batch, (steps + ranks - 1) / ranks * step + joined);
  std::vector<std::size_t> tried;
  for (std::size_t samples = step; samples + joined < part; samples *= 2) tried.push_back(samples + joined);
  tried.push_back(part);
  return tried;
}

std::vector<BatchRow> make_rows(const std::vector<parallel::StrategyKind>& strategies,
                                const std::vector<nn::Recompute>& recomputations,
                                const std::vector<std::size_t>& micro_batches,
                                const std::function<BatchRow(const BatchSetting&)>& try_setting) {
  std::vector<BatchRow> rows;
  for (const parallel::StrategyKind strategy : strategies) {
    for (const nn::Recompute recompute : recomputations) {
      for (const std::size_t micro_batch : micro_batches) {
        rows.push_back(try_setting({strategy, recompute, micro_batch}));
        if (!rows.back().fits || !rows.back().failure.empty()) break;
      }
    }
  }
  return rows;
}

const BatchRow* fastest_row(const std::vector<BatchRow>& rows) {
  constexpr double alike = 1.001;
  double least = INFINITY;
  const auto counts = [](const BatchRow& row) { return row.fits && row.seconds.has_value(); };
  for (const BatchRow& row : rows) {
    if (counts(row)) least = std::min(least, *row.seconds);
  }
  const BatchRow* best = nullptr;
  for (const BatchRow& row : rows) {
    if (!counts(row) || *row.seconds > alike * least) continue;
    if (best == nullptr || row.setting.micro_batch > best->setting.micro_batch) best = &row;
  }
  return best;
}

std::optional<double> loss_difference(const std::vector<BatchRow>& rows) {
  const auto first = spread(rows, &BatchRow::loss), last = spread(rows, &BatchRow::last_loss);
  return first && last ? std::max(first, last) : first;
}

double loss_tolerance(Precision precision) { return precision == Precision::float32 ? 1e-4 : 2e-2; }

std::string setting_text(const BatchSetting& setting) {
  return fmt::format("{}, --recompute {}, micro-batch {}", to_string(setting.strategy),
                     nn::to_string(setting.recompute), setting.micro_batch);
}

}  // namespace mylos::app
