#include "app/report/svg_chart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace mylos::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

Chart chart_of(std::vector<CurvePoint> points) {
  Chart chart{.title = "Loss <1>"};
  chart.curves.push_back({.name = "a & b", .points = std::move(points)});
  return chart;
}

TEST(SvgChart, DrawsWhatIsFinite) {
  const std::string html = chart_html(chart_of({{0, 0}, {1, 5}, {2, no_value}, {3, 10}, {4, 5}}));
  // (0, 0) is the lower left corner and (4, 10) the upper right corner; the gap starts a new line segment.
  EXPECT_THAT(html, HasSubstr("d=\"M68.0 230.0L168.5 130.0M369.5 30.0L470.0 130.0\""));
  EXPECT_THAT(html, HasSubstr("Values that are not finite: 1, left out."));
  EXPECT_THAT(html, HasSubstr("<b>Loss &lt;1&gt;</b>"));
  EXPECT_THAT(html, HasSubstr("a &amp; b: from 0 to 10, at last 5"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf\"")));
}

TEST(SvgChart, IsEmptyWhereNothingIsFinite) {
  EXPECT_EQ(chart_html(chart_of({})), "");
  EXPECT_EQ(chart_html(chart_of({{1, no_value}, {2, std::numeric_limits<double>::infinity()}})), "");
}

TEST(SvgChart, OnePointIsAMark) {
  EXPECT_THAT(chart_html(chart_of({{1, 5}})), HasSubstr("<circle cx="));
  EXPECT_THAT(chart_html(chart_of({{1, no_value}, {2, 5}, {3, no_value}})), HasSubstr("<circle cx="));
}

TEST(SvgChart, ShowsEachValueWhereThePointerIs) {
  const std::string html = chart_html(chart_of({{1, 0.25}, {2, 0.5}, {3, 0.75}}));
  EXPECT_THAT(html, HasSubstr(">step 2</tspan>"));
  EXPECT_THAT(html, HasSubstr(">0.5</tspan>"));
  EXPECT_THAT(html, HasSubstr("<tr><th scope=\"row\">3</th><td class=\"n\">0.75</td></tr>"));
}

TEST(SvgChart, ACurveThatEndedHasNoValueThere) {
  Chart chart = chart_of({{1, 0.25}, {2, 0.5}});
  chart.curves.push_back({.name = "short", .points = {{1, 7.0}}, .colour = 1});
  EXPECT_THAT(chart_html(chart),
              HasSubstr("<tr><th scope=\"row\">2</th><td class=\"n\">0.5</td><td class=\"n\">\xe2\x80\x93</td></tr>"));
}

TEST(SvgChart, HugeValuesStayInThePicture) {
  const std::string html = chart_html(chart_of({{1, -1e308}, {2, 1e308}}));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(SvgChart, CurvesBeyondThePaletteHaveDashes) {
  Chart chart{.title = "many"};
  for (std::size_t i = 0; i < 8; ++i) {
    chart.curves.push_back({.name = std::to_string(i), .points = {{0, 1}, {1, 2}}, .colour = i});
  }
  const std::string html = chart_html(chart);
  EXPECT_THAT(html, HasSubstr("class=\"s s0\""));
  EXPECT_THAT(html, HasSubstr("class=\"s s1 d1\""));
  EXPECT_THAT(html, HasSubstr("class=\"legend\""));
}

TEST(SvgChart, ABarIsCutByItsParts) {
  const std::string svg = bar_svg({{"a", 1.0, 0}, {"b", 3.0, 1}}, "shares");
  EXPECT_THAT(svg, HasSubstr("x=\"0.00\" y=\"0\" width=\"250.00\""));
  EXPECT_THAT(svg, HasSubstr("<title>b: 75.0 %</title>"));
  EXPECT_EQ(bar_svg({{"a", 0.0, 0}}, "shares"), "");
}

}  // namespace
}  // namespace mylos::app
