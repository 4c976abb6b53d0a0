#include "app/batch/batch_output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// The table of micro-batches as JSON and as text.
namespace mylos::app {
namespace {

using nn::Recompute;
using parallel::StrategyKind;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t gib = std::size_t{1} << 30;

BatchTable batch_example() {
  BatchTable table{.model = "small",
                   .machine = "a100-80",
                   .rate = "assumed",
                   .work = "images",
                   .samples = "images",
                   .precision = "bfloat16",
                   .batch = 64,
                   .part = 16,
                   .ranks = 4,
                   .nodes = 2,
                   .available = 78 * gib,
                   .is_peak = false,
                   .line = "mylos train --mode sharded"};
  table.rows.push_back({.setting = {StrategyKind::sharded, Recompute::layer, 8},
                        .micro_batches = 2,
                        .fits = true,
                        .planned = 40 * gib,
                        .used = 39 * gib,
                        .seconds = 0.25,
                        .rate = 256.0,
                        .loss = 1.5,
                        .last_loss = 1.25});
  table.rows.push_back({.setting = {StrategyKind::sharded, Recompute::layer, 16}, .planned = 90 * gib});
  table.rows.push_back({.setting = {StrategyKind::hybrid, Recompute::none, 1}, .fits = true, .failure = "broken"});
  table.largest = {{StrategyKind::sharded, Recompute::none, 0}, {StrategyKind::sharded, Recompute::layer, 12}};
  return table;
}

mylos::Json printed(const BatchTable& table) { return parse_json(to_json(table).dump(), "table"); }

TEST(BatchJson, IsReadAsItWasWritten) {
  const BatchTable table = batch_example();
  const mylos::Json json = printed(table);
  EXPECT_EQ(json["rows"][0]["images_per_second"], 256.0);
  EXPECT_EQ(json["rows"][0]["fastest"], true);
  EXPECT_EQ(json["rows"][1]["step_seconds"], nullptr);
  EXPECT_EQ(json["rows"][2]["failure"], "broken");
  EXPECT_EQ(json["recommended"], table.line);
  EXPECT_EQ(to_json(read_batch_table(json, "table")), to_json(table));
}

TEST(BatchJson, WhatIsMissingOrUnknownIsNamed) {
  const auto complaint = [](const mylos::Json& json) -> std::string {
    try {
      read_batch_table(json, "batch.json");
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  mylos::Json json = printed(batch_example());
  json["rows"][1]["mode"] = "scattered";
  EXPECT_THAT(complaint(json), HasSubstr("batch.json: rows[1].mode: there is no \"scattered\""));
  json = printed(batch_example());
  json["rows"][0].erase("fits");
  EXPECT_THAT(complaint(json), HasSubstr("batch.json: rows[0]"));
  EXPECT_THAT(complaint(mylos::Json::array()), HasSubstr("batch.json"));
}

TEST(BatchText, MarksTheFastestAndSaysWhatDoesNotFit) {
  const std::string text = to_text(batch_example());
  EXPECT_THAT(text, HasSubstr("batch    64 images per step on 4 ranks, at most 16 on each\n"));
  EXPECT_THAT(text, HasSubstr("machine  a100-80, 78.00 GiB free for a rank\n"));
  EXPECT_THAT(text, HasSubstr("250          256  fastest\n"));
  EXPECT_THAT(text, HasSubstr("no    90.00 GiB            -          -            -  more than the free memory\n"));
  EXPECT_THAT(text, HasSubstr("  broken\n"));
  EXPECT_THAT(text, HasSubstr("sharded: --recompute none does not fit, --recompute layer 12 (48 on all ranks)\n"));
  EXPECT_THAT(text, HasSubstr("resident")) << "the figure is not the peak";
  EXPECT_THAT(text, HasSubstr("images/s"));
  EXPECT_THAT(text, Not(HasSubstr("tokens")));
}

TEST(BatchText, SaysWhetherLossesAgree) {
  BatchTable table = batch_example();
  EXPECT_EQ(losses_text(table, 0.1), "");
  table.rows[1] = table.rows[0];
  EXPECT_THAT(losses_text(table, 0.1),
              HasSubstr("agree in the first and in the last step: 0.0e+00 relative over 2 rows"));
  table.rows[1].last_loss = 2.5;
  EXPECT_THAT(losses_text(table, 0.1), HasSubstr("differ in the first or in the last step: 5.0e-01 relative over 2 "
                                                 "rows, more than 0.1; 1.5 and 1.25 with sharded, --recompute "
                                                 "layer, micro-batch 8; 1.5 and 2.5 with sharded"));
}

}  // namespace
}  // namespace mylos::app
