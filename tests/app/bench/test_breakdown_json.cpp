#include "app/bench/breakdown_json.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mylos::app {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Returns these rows as `mylos bench step --breakdown --json` prints them.
json printed(const std::vector<BreakdownRow>& rows) {
  return {{breakdown_key, json(to_json({.kernels = rows, .host = {}}, {.flops = 2e9, .bandwidth = 3e9}))}};
}

BreakdownRow known() {
  return {.name = "mylos::optimizer::adamw",
          .calls = 2.0,
          .seconds = 0.5,
          .share = 0.25,
          .work = Work{.flops = 4e9, .bytes = 8e9},
          .flops = 8e9,
          .bytes = 16e9,
          .roofline = 0.75};
}

TEST(BreakdownJson, IsReadAsItIsWritten) {
  const BreakdownRow unknown{.name = "mylos::new", .calls = 1.0, .seconds = 0.125, .share = 0.0625};
  const std::vector<BreakdownRow> rows = kernel_rows(printed({known(), unknown}), "kernels.json");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "mylos::optimizer::adamw");
  EXPECT_EQ(rows[0].calls, 2.0);
  EXPECT_EQ(rows[0].seconds, 0.5);
  EXPECT_EQ(rows[0].share, 0.25);
  EXPECT_EQ(rows[0].work->flops, 4e9);
  EXPECT_EQ(rows[0].work->bytes, 8e9);
  EXPECT_EQ(rows[0].flops, 8e9);
  EXPECT_EQ(rows[0].bytes, 16e9);
  EXPECT_EQ(rows[0].roofline, 0.75);
  EXPECT_EQ(rows[1].share, 0.0625);
  EXPECT_FALSE(rows[1].work || rows[1].flops || rows[1].bytes || rows[1].roofline);
}

TEST(BreakdownJson, AnythingElseIsAnErrorThatNamesThePlace) {
  const auto error = [](const json& file) { return tests::error_of([&] { kernel_rows(file, "kernels.json"); }); };
  EXPECT_EQ(error({{"seconds", 1}}), "kernels.json: the key 'breakdown' is missing");
  json renamed = printed({known()});
  renamed[breakdown_key]["kernels"][0].erase("share_of_step");
  EXPECT_EQ(error(renamed), "kernels.json: breakdown.kernels[0]: the key 'share_of_step' is missing");
  json text = printed({known()});
  text[breakdown_key]["kernels"][0]["share_of_roofline"] = "much";
  EXPECT_THAT(error(text), HasSubstr("breakdown.kernels[0].share_of_roofline: expected number, found string"));
}

}  // namespace
}  // namespace mylos::app
