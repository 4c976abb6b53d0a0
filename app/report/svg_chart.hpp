#pragma once

#include "app/report/curve.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Draws curves over axes as SVG inside HTML. The style sheet (report_style.cpp) sets colours and font sizes.
namespace mylos::app {

/// Number of colours in the style sheet; further curves reuse them with dashes.
inline constexpr std::size_t palette_colours = 6;

/// A horizontal reference line across the chart.
struct ChartLevel {
  double y = 0.0;
  std::string name;
};

struct Chart {
  std::string title;
  std::string x_name = "step";  ///< with its unit: "time, minutes"
  bool whole_x = true;          ///< whether x values are whole numbers
  std::string unit = {};        ///< unit of y; empty if it has none
  std::vector<Curve> curves = {};
  std::optional<ChartLevel> level = {};
  std::optional<std::size_t> gaps = {};  ///< number of values that are not finite; default: counted from the curves
  std::string note = {};                 ///< text below the chart, such as a remark on smoothed or missing values
  /// Formats a value of y for the readout at the pointer.
  std::function<std::string(double)> value_text = {};
};

/// Returns a figure: title, legend if there are several curves, the curves, a readout of the values at the pointer, and
/// a table of values that can be opened. Values that are not finite are gaps, which a note counts. Empty if no value is
/// finite.
std::string chart_html(const Chart& chart);

/// Returns the number of values of these curves that are not finite.
std::size_t gaps_in(const std::vector<Curve>& curves);

/// Returns a short line in the colour and dashes of curve `colour`.
std::string legend_line(std::size_t colour);

/// One part of a whole.
struct BarPart {
  std::string name;
  double value = 0.0;
  std::size_t colour = 0;  ///< index in the palette, or the grey after it
};

/// Returns a bar divided in proportion to the values. `text` describes it for screen readers.
std::string bar_svg(const std::vector<BarPart>& parts, std::string_view text);

}  // namespace mylos::app
