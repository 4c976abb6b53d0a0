"""Draws a row of line plots as one SVG file."""

import html

WIDTH, HEIGHT, MARGIN_LEFT, MARGIN_TOP, MARGIN_BOTTOM, GAP = 300, 220, 58, 34, 46, 14
POINT, LINE, GRID, INK = "#1f6f8b", "#c8553d", "#d8d8d8", "#333333"


def nice_ticks(largest, count=4):
    """Returns ticks from 0 to `largest`: multiples of 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** len(str(int(largest))) if largest >= 1 else 1.0
    while power > largest / count:
        power /= 10
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor * count >= largest)
    return [step * index for index in range(int(largest / step + 1e-9) + 1)]


class Panel:
    """One plot: measured points, and a fitted line through `line`'s points."""

    def __init__(self, title, x_label, y_label, points, line):
        self.title, self.x_label, self.y_label, self.points, self.line = title, x_label, y_label, points, line
        self.x_most = 1.04 * max(x for x, _ in points)
        self.y_most = 1.08 * max(y for _, y in [*points, *line])

    def svg(self, left):
        self.left = left + MARGIN_LEFT
        parts = [text(self.left + WIDTH / 2, 18, self.title, "middle", 13), *self.axes()]
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in self.line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5" fill="{POINT}"/>' for x, y in self.points]
        return parts

    def x(self, value):
        return self.left + WIDTH * value / self.x_most

    def y(self, value):
        return MARGIN_TOP + HEIGHT * (1 - value / self.y_most)

    def axes(self):
        bottom = MARGIN_TOP + HEIGHT
        for tick in nice_ticks(self.y_most):
            y = self.y(tick)
            yield f'<line x1="{self.left}" y1="{y:.1f}" x2="{self.left + WIDTH}" y2="{y:.1f}" stroke="{GRID}"/>'
            yield text(self.left - 6, y + 4, f"{tick:g}", "end")
        for tick in nice_ticks(self.x_most):
            yield text(self.x(tick), bottom + 16, f"{tick:g}", "middle")
        yield text(self.left + WIDTH / 2, bottom + 36, self.x_label, "middle")
        middle = MARGIN_TOP + HEIGHT / 2
        yield text(self.left - 44, middle, self.y_label, "middle", turn=f' transform="rotate(-90 {self.left - 44:.1f} {middle:.1f})"')


def text(x, y, content, anchor, size=11, turn=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}"{turn}>{html.escape(content)}</text>'


def row_of_plots(panels):
    step = MARGIN_LEFT + WIDTH + GAP
    width, height = step * len(panels), MARGIN_TOP + HEIGHT + MARGIN_BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="sans-serif">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for index, panel in enumerate(panels):
        parts += panel.svg(index * step)
    return "\n".join([*parts, "</svg>", ""])
