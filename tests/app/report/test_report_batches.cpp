#include "app/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// The section on micro-batches, within a page and as a page of its own.
namespace mylos::app {
namespace {

using nn::Recompute;
using parallel::StrategyKind;
using testing::HasSubstr;
using testing::Not;

std::size_t occurrences(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

BatchTable reported_batches() {
  constexpr std::size_t mebibyte = 1 << 20;
  BatchTable table{.model = "small & fast",
                   .machine = "4 threads",
                   .work = "images",
                   .samples = "images",
                   .precision = "float",
                   .batch = 8,
                   .available = 100 * mebibyte,
                   .line = "mylos train --micro-batch 2"};
  for (const Recompute recompute : {Recompute::none, Recompute::layer}) {
    for (const std::size_t samples : {1, 2}) {
      table.rows.push_back({.setting = {StrategyKind::replicated, recompute, samples},
                            .fits = true,
                            .planned = 40 * mebibyte * samples,
                            .used = 38 * mebibyte * samples,
                            .seconds = 0.5 / static_cast<double>(samples),
                            .rate = 16.0 * static_cast<double>(samples)});
    }
    table.rows.push_back({.setting = {StrategyKind::replicated, recompute, 4}, .planned = 160 * mebibyte});
  }
  table.largest = {{StrategyKind::replicated, Recompute::none, 2}};
  return table;
}

TEST(ReportBatches, DrawsSpeedAndMemoryOverTheMicroBatch) {
  const std::string html = batches_html(reported_batches());
  EXPECT_EQ(occurrences(html, "<figure"), 2u);
  for (const char* words : {"Speed, measured", "Memory of a rank", "micro-batch, images", "images/s", "there is",
                            "replicated, recompute none", "replicated, recompute layer", "small &amp; fast", "fastest",
                            "does not fit: 160.00 MiB of 100.00 MiB", "mylos train --micro-batch 2"}) {
    EXPECT_THAT(html, HasSubstr(words));
  }
  EXPECT_THAT(html, Not(HasSubstr("Speed, predicted")));
  BatchTable predicted = reported_batches();
  predicted.rate = "assumed";
  EXPECT_THAT(batches_html(predicted), HasSubstr("Speed, predicted"));
}

TEST(ReportBatches, APageNeedsNoRun) {
  const std::string page = report_html({}, {.batches = reported_batches()});
  EXPECT_THAT(page, HasSubstr("<h1>small &amp; fast, micro-batches</h1>"));
  EXPECT_THAT(page, HasSubstr("id=\"batches\""));
  EXPECT_EQ(occurrences(page, "<section"), 1u);
  EXPECT_EQ(batches_html(BatchTable{}), "");
}

}  // namespace
}  // namespace mylos::app
