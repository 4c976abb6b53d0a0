#include "app/batch/batch_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// The rows of the table of micro-batches, the best row, and the notes on their losses.
namespace mylos::app {
namespace {

using nn::Recompute;
using parallel::StrategyKind;
using testing::ElementsAre;

BatchRow row_of(std::size_t micro_batch, double seconds, double loss = 1.0) {
  return {.setting = {.micro_batch = micro_batch}, .fits = true, .seconds = seconds, .loss = loss, .last_loss = loss};
}

TEST(TriedMicroBatches, DoubleUpToARanksPart) {
  EXPECT_THAT(tried_micro_batches(16, 1), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(tried_micro_batches(64, 4), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(tried_micro_batches(12, 1), ElementsAre(1, 2, 4, 8, 12));
  EXPECT_THAT(tried_micro_batches(7, 2), ElementsAre(1, 2, 4));
  EXPECT_THAT(tried_micro_batches(2, 4), ElementsAre(1)) << "fewer samples than ranks";
}

TEST(TriedMicroBatches, AreWholeSteps) {
  EXPECT_THAT(tried_micro_batches(256, 1, 32), ElementsAre(32, 64, 128, 256));
  EXPECT_THAT(tried_micro_batches(96, 2, 32), ElementsAre(32, 64));
  EXPECT_THAT(tried_micro_batches(72, 1, 32), ElementsAre(32, 64, 72));
  EXPECT_THAT(tried_micro_batches(16, 1, 16), ElementsAre(16));
  EXPECT_THAT(tried_micro_batches(65, 1, 32), ElementsAre(33, 65)) << "groups of 32 and 33 images";
  EXPECT_THAT(tried_micro_batches(33, 1, 32), ElementsAre(33));
  EXPECT_THAT(tried_micro_batches(129, 2, 32), ElementsAre(33, 65));
}

TEST(BatchRows, GrowUntilOneDoesNotFitOrFails) {
  const std::vector<BatchRow> rows =
      make_rows({StrategyKind::replicated, StrategyKind::sharded}, {Recompute::none, Recompute::layer}, {1, 2, 4, 8},
                [](const BatchSetting& setting) {
                  BatchRow row{.setting = setting, .fits = true};
                  if (setting.strategy == StrategyKind::replicated) row.fits = setting.micro_batch < 2;
                  if (setting.recompute == Recompute::layer && setting.micro_batch == 4) row.failure = "broken";
                  return row;
                });
  std::vector<std::string> texts;
  for (const BatchRow& row : rows) texts.push_back(setting_text(row.setting));
  EXPECT_THAT(
      texts, ElementsAre("replicated, --recompute none, micro-batch 1",
                         "replicated, --recompute none, micro-batch 2",  // does not fit
                         "replicated, --recompute layer, micro-batch 1", "replicated, --recompute layer, micro-batch 2",
                         "sharded, --recompute none, micro-batch 1", "sharded, --recompute none, micro-batch 2",
                         "sharded, --recompute none, micro-batch 4", "sharded, --recompute none, micro-batch 8",
                         "sharded, --recompute layer, micro-batch 1", "sharded, --recompute layer, micro-batch 2",
                         "sharded, --recompute layer, micro-batch 4"));  // failed
}

TEST(FastestRow, FitsHasATimeAndIsTheLargestOfEquals) {
  EXPECT_EQ(fastest_row({}), nullptr);
  std::vector<BatchRow> rows = {row_of(1, 2.0), row_of(2, 1.0), row_of(4, 1.0005), row_of(8, 1.1)};
  EXPECT_EQ(fastest_row(rows), &rows[2]);
  rows[3].seconds = 0.5;
  EXPECT_EQ(fastest_row(rows), &rows[3]);
  rows[3].fits = false;
  EXPECT_EQ(fastest_row(rows), &rows[2]);
  rows = {{.fits = true, .failure = "broken"}};
  EXPECT_EQ(fastest_row(rows), nullptr);
}

TEST(LossDifference, IsTheLargerOfTheFirstAndTheLastSteps) {
  EXPECT_EQ(loss_difference({row_of(1, 1.0)}), std::nullopt) << "nothing to compare with";
  std::vector<BatchRow> rows = {row_of(1, 1.0, 2.0), row_of(2, 1.0, 2.0), {.fits = false}};
  EXPECT_EQ(loss_difference(rows), 0.0);
  rows[1].loss = 2.5;
  EXPECT_DOUBLE_EQ(loss_difference(rows).value(), 0.2);
  rows[0].last_loss = 1.0;
  EXPECT_DOUBLE_EQ(loss_difference(rows).value(), 0.5);
  EXPECT_LT(loss_tolerance(Precision::float32), loss_tolerance(Precision::bfloat16));
}

}  // namespace
}  // namespace mylos::app
