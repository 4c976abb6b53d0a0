#include "core/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using testing::HasSubstr;

TEST(Trace, KeepsNothingUntilItIsStarted) {
  Trace::start(4);
  Trace::stop();
  { const TraceSpan span(TraceLane::compute, "forward", "layer 0"); }
  EXPECT_TRUE(Trace::events().empty());
}

TEST(Trace, KeepsAsManyEventsAsItWasTold) {
  Trace::start(2);
  for (int i = 0; i < 3; ++i) const TraceSpan span(TraceLane::waiting, "values of", "layer " + std::to_string(i));
  Trace::stop();
  const std::vector<TraceEvent> events = Trace::events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].name, "values of layer 1");
  EXPECT_LE(events[0].end, events[1].begin);
}

TEST(Trace, IsOneListOfTheEventsOfAllRanks) {
  const std::string text = chrome_trace_part(0, 2, {{TraceLane::compute, "a \"b\"", 5.0, 5.5}}) +
                           chrome_trace_part(1, 2, {{TraceLane::communication, "c", 6.0, 7.0}});
  EXPECT_THAT(text, HasSubstr(R"("name": "a \"b\"", "pid": 0, "tid": 0, "ts": 5000000.0, "dur": 500000.0)"));
  EXPECT_THAT(text, HasSubstr(R"("name": "c", "pid": 1, "tid": 2, "ts": 6000000.0, "dur": 1000000.0)"));
  EXPECT_TRUE(text.starts_with("{\"traceEvents\": [\n{") && text.ends_with("}\n]}\n")) << text;
  EXPECT_TRUE(is_chrome_trace(text.substr(0, 100)));
  EXPECT_FALSE(is_chrome_trace(R"({"traceEvents": [)"
                               "\n"
                               R"({"ph": "X", "name": "of another program"}]})"));
}

}  // namespace
}  // namespace mylos
