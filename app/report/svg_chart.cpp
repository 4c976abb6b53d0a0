#include "app/report/svg_chart.hpp"

#include "app/report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace mylos::app {
namespace {

// In units of the picture, which the page scales to the available width.
constexpr double width = 480.0, height = 270.0;
constexpr double left = 68.0, right = 470.0, top = 30.0, bottom = 230.0;
constexpr std::size_t columns = 400;  ///< about the width of a curve in pixels

struct Axes {
  Axis x, y;
  double position_x(double value) const { return left + x.position(value) * (right - left); }
  double position_y(double value) const { return bottom - y.position(value) * (bottom - top); }
};

std::string class_of(const Curve& curve) {
  std::string name = fmt::format("s s{}", curve.colour % palette_colours);
  if (curve.colour >= palette_colours) name += fmt::format(" d{}", (curve.colour / palette_colours - 1) % 3 + 1);
  if (curve.faint) name += " faint";
  return name;
}

Axes make_axes(const Chart& chart) {
  constexpr int most_ticks_x = 5, most_ticks_y = 5;
  Extent extent = extent_of(chart.curves);
  if (chart.level) {
    extent.low_y = std::min(extent.low_y, chart.level->y);
    extent.high_y = std::max(extent.high_y, chart.level->y);
  }
  return {range_axis(extent.low_x, extent.high_x, most_ticks_x, chart.whole_x),
          value_axis(extent.low_y, extent.high_y, most_ticks_y)};
}

std::string power_of_ten(int exponent) {
  const std::string digits = fmt::format("{}{}", exponent < 0 ? "&#8722;" : "", std::abs(exponent));
  return fmt::format("&#215;10<tspan dy=\"-5\" class=\"small\">{}</tspan>", digits);
}

std::string axes_svg(const Chart& chart, const Axes& axes) {
  std::string svg;
  for (const double tick : axes.y.ticks) {
    const double y = axes.position_y(tick);
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text class=\"t\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>\n",
        left, y, right, left - 7.0, y + 4.5, axes.y.label(tick));
  }
  for (const double tick : axes.x.ticks) {
    const double x = axes.position_x(tick);
    svg += fmt::format(
        "<path class=\"axis\" d=\"M{:.1f} {:.1f}v4\"/><text class=\"t\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"{}\">{}</text>\n",
        x, bottom, x, bottom + 18.0, x > right - 20.0 ? "end" : "middle", axes.x.label(tick));
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", left, bottom, right);
  svg += fmt::format("<text class=\"t name\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}{}</text>\n",
                     0.5 * (left + right), height - 4.0, escape_html(chart.x_name),
                     axes.x.exponent == 0 ? "" : " (" + power_of_ten(axes.x.exponent) + ")");
  if (axes.y.exponent != 0) {
    svg += fmt::format("<text class=\"t\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", 4.0, top - 16.0,
                       power_of_ten(axes.y.exponent));
  }
  return svg;
}

std::string curve_svg(const Curve& curve, const Axes& axes) {
  const std::vector<CurvePoint> points = decimated(curve.points, columns);
  std::string path, dots;
  bool in_gap = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CurvePoint& point = points[i];
    if (!point.is_finite()) {
      in_gap = true;
      continue;
    }
    const double x = axes.position_x(point.x), y = axes.position_y(point.y);
    path += fmt::format("{}{:.1f} {:.1f}", in_gap ? "M" : "L", x, y);
    // A point between two gaps has no line, so it is drawn as a dot.
    const bool alone = in_gap && (i + 1 == points.size() || !points[i + 1].is_finite());
    if (curve.marks || alone) dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", x, y);
    in_gap = false;
  }
  if (path.empty()) return {};
  return fmt::format("<g class=\"{}\"><path d=\"{}\"/>{}</g>\n", class_of(curve), path, dots);
}

std::string level_svg(const ChartLevel& level, const Axes& axes) {
  return fmt::format("<path class=\"level\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left, axes.position_y(level.y), right);
}

/// Returns about `most` occurring values of x, evenly spread over the range and including the last one.
std::vector<double> sampled_x(const Chart& chart, std::size_t most) {
  std::set<double> all;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) all.insert(point.x);
  }
  const std::vector<double> values(all.begin(), all.end());
  if (values.size() <= most) return values;
  std::vector<double> chosen;
  double next = values.front();
  const double between = (values.back() - values.front()) / static_cast<double>(most);
  for (const double x : values) {
    if (x < next) continue;
    chosen.push_back(x);
    next = x + between;
  }
  if (chosen.back() != values.back()) chosen.push_back(values.back());
  return chosen;
}

/// Returns the curve's point at `x`. Whole numbers match exactly between curves; times only approximately.
const CurvePoint* point_at(const Chart& chart, const Curve& curve, double x) {
  constexpr double near = 0.01;  // fraction of the curve's length
  const bool has_length = !chart.whole_x && curve.points.size() > 1;
  return nearest_point(curve.points, x, has_length ? near * (curve.points.back().x - curve.points.front().x) : 0.0);
}

std::string value_at(const Chart& chart, const Curve& curve, double x) {
  const CurvePoint* point = point_at(chart, curve, x);
  if (point == nullptr) return number_text(std::numeric_limits<double>::quiet_NaN());
  return chart.value_text ? chart.value_text(point->y) : number_text(point->y);
}

std::string x_text(const Chart& chart, double x) {
  return fmt::format("{} {}", chart.x_name.substr(0, chart.x_name.find(',')), number_text(x));
}

std::string shortened(const std::string& name) {
  constexpr std::size_t most = 22;
  if (name.size() <= most) return name;
  std::size_t begin = name.size() - most;  // moved on if it is inside a UTF-8 sequence
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xC0u) == 0x80u) ++begin;
  return "\xe2\x80\xa6" + name.substr(begin);
}

/// Returns the readout at the pointer: a line, a mark on each curve, and a box with their values.
std::string readout_svg(const Chart& chart, const Axes& axes, double x) {
  constexpr double line = 15.0, letter = 6.6, margin = 7.0;
  const double at = axes.position_x(x);
  std::string marks = fmt::format("<path class=\"guide\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", at, top, bottom);
  std::vector<std::string> lines = {x_text(chart, x)};
  for (const Curve& curve : chart.curves) {
    const CurvePoint* point = point_at(chart, curve, x);
    if (point == nullptr) continue;
    marks += fmt::format("<circle class=\"p{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"/>",
                         curve.colour % palette_colours, axes.position_x(point->x), axes.position_y(point->y));
    const std::string value = value_at(chart, curve, x);
    lines.push_back(chart.curves.size() == 1 ? value : shortened(curve.name) + ": " + value);
  }
  std::size_t longest = 0;
  for (const std::string& each : lines) longest = std::max(longest, each.size());
  const double box = letter * static_cast<double>(longest) + 2.0 * margin;
  const double begin = at + 10.0 + box < right ? at + 10.0 : std::max(2.0, at - 10.0 - box);
  std::string texts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    texts += fmt::format("<tspan x=\"{:.1f}\" y=\"{:.1f}\">{}</tspan>", begin + margin,
                         top + 14.0 + line * static_cast<double>(i), escape_html(lines[i]));
  }
  return fmt::format(
      "{}<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\"/>"
      "<text>{}</text>",
      marks, begin, top, box, line * static_cast<double>(lines.size()) + 6.0, texts);
}

std::string readouts_svg(const Chart& chart, const Axes& axes) {
  constexpr std::size_t most = 48;
  const std::vector<double> xs = sampled_x(chart, most);
  std::string svg;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double begin = i == 0 ? left : axes.position_x(0.5 * (xs[i - 1] + xs[i]));
    const double end = i + 1 == xs.size() ? right : axes.position_x(0.5 * (xs[i] + xs[i + 1]));
    svg += fmt::format(
        "<g class=\"h\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/><g>{}</g></g>\n", begin,
        top, std::max(0.0, end - begin), bottom - top, readout_svg(chart, axes, xs[i]));
  }
  return svg;
}

std::string legend_html(const Chart& chart) {
  std::string entries;
  const auto add = [&](const std::string& line, const std::string& name) {
    entries +=
        element("li", "", "<svg viewBox=\"0 0 24 8\" aria-hidden=\"true\">" + line + "</svg>" + escape_html(name));
  };
  if (chart.curves.size() > 1) {
    for (const Curve& curve : chart.curves) {
      add(fmt::format("<g class=\"{}\"><path d=\"M0 4H24\"/></g>", class_of(curve)), curve.name);
    }
  }
  if (chart.level) add("<path class=\"level\" d=\"M0 4H24\"/>", chart.level->name);
  return entries.empty() ? entries : element("ul", "class=\"legend\"", entries) + "\n";
}

std::string values_html(const Chart& chart) {
  constexpr std::size_t most = 20;
  std::vector<std::string> head = {chart.x_name};
  for (const Curve& curve : chart.curves) head.push_back(curve.name);
  HtmlTable table(std::move(head));
  for (const double x : sampled_x(chart, most)) {
    std::vector<std::string> cells = {number_text(x)};
    for (const Curve& curve : chart.curves) cells.push_back(value_at(chart, curve, x));
    table.add(cells);
  }
  return element("details", "", element("summary", "", "Values") + table.html());
}

/// Returns a text description of the chart for screen readers.
std::string description(const Chart& chart) {
  std::string text;
  for (const Curve& curve : chart.curves) {
    const Extent extent = extent_of({curve});
    if (extent.empty() || curve.faint) continue;
    text += fmt::format("{}{}: from {} to {}, at last {}", text.empty() ? "" : "; ", curve.name,
                        number_text(extent.low_y), number_text(extent.high_y), value_at(chart, curve, extent.high_x));
  }
  return text;
}

std::string gaps_text(const Chart& chart) {
  const std::size_t gaps = chart.gaps.value_or(gaps_in(chart.curves));
  return gaps == 0 ? std::string() : fmt::format("Values that are not finite: {}, left out.", gaps);
}

}  // namespace

std::size_t gaps_in(const std::vector<Curve>& curves) {
  std::size_t gaps = 0;
  for (const Curve& curve : curves) {
    gaps += static_cast<std::size_t>(
        std::ranges::count_if(curve.points, [](const CurvePoint& point) { return !point.is_finite(); }));
  }
  return gaps;
}

std::string legend_line(std::size_t colour) {
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 24 8\" aria-hidden=\"true\"><g class=\"{}\"><path d=\"M0 4H24\"/></g></svg>",
      class_of({.name = {}, .points = {}, .colour = colour}));
}

std::string chart_html(const Chart& chart) {
  if (extent_of(chart.curves).empty()) return {};
  const Axes axes = make_axes(chart);
  std::string svg = axes_svg(chart, axes);
  for (const Curve& curve : chart.curves) svg += curve_svg(curve, axes);
  if (chart.level) svg += level_svg(*chart.level, axes);
  svg += readouts_svg(chart, axes);
  const std::string label = escape_html(chart.title + ". " + description(chart));
  std::string html =
      element("figcaption", "",
              text_element("b", "", chart.title) +
                  (chart.unit.empty() ? "" : " " + text_element("span", "", chart.unit)) + legend_html(chart));
  // Removes the space above the axis if no power of ten stands there.
  const double above = axes.y.exponent == 0 ? top - 12.0 : 0.0;
  html += fmt::format("<svg class=\"chart\" viewBox=\"0 {} {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n", above,
                      width, height - above, label, svg);
  for (const std::string& note : {chart.note, gaps_text(chart)}) {
    if (!note.empty()) html += text_element("p", "class=\"note\"", note);
  }
  return element("figure", "", html + values_html(chart)) + "\n";
}

std::string bar_svg(const std::vector<BarPart>& parts, std::string_view text) {
  constexpr double long_side = 1000.0, short_side = 24.0;
  double sum = 0.0, at = 0.0;
  for (const BarPart& part : parts) sum += part.value;
  if (!(sum > 0.0)) return {};
  std::string rects;
  for (const BarPart& part : parts) {
    const double length = part.value / sum * long_side;
    rects += fmt::format(
        "<rect class=\"f{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"{}\"><title>{}: {:.1f} %</title></rect>",
        part.colour, at, length, short_side, escape_html(part.name), 100.0 * part.value / sum);
    at += length;
  }
  return fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
      long_side, short_side, escape_html(text), rects);
}

}  // namespace mylos::app
