#include "app/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mylos::app {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json step(double end, double exchange) {
  return {{"step", 1},
          {"seconds", 2.0},
          {"time", end},
          {"data_seconds", 0.25},
          {"update_seconds", 0.5},
          {"exchange_seconds", exchange}};
}

/// Returns the seconds of a part by the beginning of its name.
double part(const RunTime& time, std::string_view name) {
  for (const BarPart& each : time.parts) {
    if (each.name.starts_with(name)) return each.value;
  }
  return -1.0;
}

TEST(RunTime, AddsUpToTheTimeOnTheWall) {
  train::RunRecord run;
  run.steps = {step(102.0, 0.25), step(110.0, 0.75)};
  run.evaluations = {{{"step", 1}, {"seconds", 3.0}, {"time", 113.5}}};
  run.checkpoints = {{{"step", 1}, {"seconds", 1.0}, {"time", 115.0}}};
  const RunTime time = time_of("r", run);
  EXPECT_EQ(part(time, "making batches"), 0.5);
  EXPECT_EQ(part(time, "optimizer"), 1.0);
  EXPECT_EQ(part(time, "waiting"), 1.0);
  EXPECT_EQ(part(time, "forward"), 1.5);
  EXPECT_EQ(part(time, "evaluations"), 3.0);
  EXPECT_EQ(part(time, "checkpoints"), 1.0);
  EXPECT_EQ(part(time, "between"), 15.0 - 4.0 - 3.0 - 1.0);
}

TEST(RunTime, BeginsWithAnEvaluationBeforeTheFirstStep) {
  train::RunRecord run;
  run.evaluations = {{{"step", 0}, {"seconds", 10.0}, {"time", 99.5}}};
  run.steps = {step(102.0, 0.25)};
  const RunTime time = time_of("r", run);
  EXPECT_EQ(part(time, "between"), 0.5);
  EXPECT_EQ(part(time, "forward") + part(time, "making batches") + part(time, "waiting") + part(time, "optimizer") +
                part(time, "evaluations") + part(time, "between"),
            102.0 - 89.5);
}

TEST(RunTime, LeavesALongPauseOutOfTheShares) {
  train::RunRecord run;
  run.steps = {step(102.0, 0.0), step(104.0 + 43200.0, 0.0), step(107.0 + 43200.0, 0.0)};
  const RunTime time = time_of("r", run);
  EXPECT_EQ(time.pauses, 43200.0);
  EXPECT_EQ(part(time, "between"), 1.0);
  const std::string html = time_html({{.name = "r", .record = run}}, {});
  EXPECT_THAT(html, HasSubstr("Not counted: 12:00:00 in pauses"));
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">1.00</td><td class=\"n\">14.3 %</td>"));
}

TEST(RunTime, ValuesThatAreNoTimesDoNotCount) {
  train::RunRecord run;
  run.steps = {step(102.0, 0.0), step(104.0, 0.0)};
  run.steps[0]["seconds"] = 1e308;
  run.steps[1]["data_seconds"] = -1.0;
  EXPECT_EQ(part(time_of("r", run), "forward"), 2.0 - 0.25 - 1.0);
}

TEST(RunTime, OfARunThatDidNotRecordPartsIsThatOfItsSteps) {
  train::RunRecord run;
  run.steps = {{{"step", 1}, {"seconds", 2.0}}, {{"step", 2}, {"seconds", nullptr}}};
  const RunTime time = time_of("r", run);
  EXPECT_EQ(part(time, "forward"), 2.0);
  EXPECT_FALSE(time.has_exchange);
  EXPECT_EQ(part(time, "between"), 0.0);
  const std::string html = time_html({{.name = "r", .record = run}}, {});
  EXPECT_THAT(html, HasSubstr("did not record the parts"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(RunTime, ShowsKernelsThatWereMeasured) {
  const std::vector<BreakdownRow> kernels = {
      {.name = "mylos::<gemm>", .calls = 3.0, .seconds = 0.0125, .share = 0.5, .roofline = 0.75},
      {.name = "mylos::new", .calls = 1.0, .seconds = 0.005, .share = 0.2}};
  const std::string html = time_html({{.name = "r", .record = {}}}, kernels);
  EXPECT_THAT(html, HasSubstr("mylos::&lt;gemm&gt;"));
  EXPECT_THAT(html, HasSubstr("12.500"));
  EXPECT_THAT(html, HasSubstr("50.0 %"));
  EXPECT_THAT(html, HasSubstr("75 %"));
  EXPECT_THAT(html,
              HasSubstr("20.0 %</td><td class=\"n\">\xe2\x80\x93</td>"));  // a dash if no formula covers the kernel
}

}  // namespace
}  // namespace mylos::app
