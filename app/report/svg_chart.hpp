#pragma once

#include "app/report/curve.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Curves over axes as SVG inside HTML. Colours and sizes of letters are the style sheet's (report_style.hpp).
namespace mylos::app {

/// Colours that the style sheet has; further curves use them again with dashes.
inline constexpr std::size_t palette_colours = 6;

/// A line across the chart that values are compared with.
struct ChartLevel {
  double y = 0.0;
  std::string name;
};

struct Chart {
  std::string title;
  std::string x_name = "step";  ///< with its unit: "time, minutes"
  bool whole_x = true;          ///< x are whole numbers
  std::string unit = {};        ///< of y; empty = it has none
  std::vector<Curve> curves = {};
  std::optional<ChartLevel> level = {};
  std::optional<std::size_t> gaps = {};  ///< values that are not finite, where that cannot be seen from the curves
  std::string note = {};                 ///< below the chart: what was smoothed, what is missing
  /// A value of y in full, for those who point at it.
  std::function<std::string(double)> value_text = {};
};

/// A figure: title, legend where there are several curves, the curves, their values where the pointer is, and a table
/// of values to open. Values that are not finite are gaps and counted. Empty where no value is finite.
std::string chart_html(const Chart& chart);

/// Values of these curves that are not finite.
std::size_t gaps_in(const std::vector<Curve>& curves);

/// A short line in the colour and dashes of curve `colour`.
std::string legend_line(std::size_t colour);

/// One part of a whole.
struct BarPart {
  std::string name;
  double value = 0.0;
  std::size_t colour = 0;  ///< of the palette, or the grey after it
};

/// A bar cut into parts as long as their values; `text` names it for those who do not see it.
std::string bar_svg(const std::vector<BarPart>& parts, std::string_view text);

}  // namespace mylos::app
