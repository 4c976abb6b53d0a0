"""Results of a comparison as tables and as JSON: samples, ratios between them, and the rows that were left out."""

import math
import statistics


def summary(samples):
    return {"min": min(samples), "median": statistics.median(samples), "max": max(samples), "samples": samples}


class Results:
    def __init__(self):
        self.cells = []
        self.ratios = []
        self.checks = []
        self.left_out = []

    def cell(self, what, who, unit, samples, **more):
        self.cells.append({"what": what, "who": who, "unit": unit, **summary(samples), **more})

    def ratio(self, what, against, ours, theirs):
        """Adds the ratios of each round."""
        self.value(what, against, [a / b for a, b in zip(ours, theirs)], "x")

    def value(self, what, against, samples, unit):
        self.ratios.append({"what": what, "against": against, "unit": unit, **summary(samples)})

    def check(self, what, ours, theirs, tolerance):
        """Checks both programs' losses of the same batches. Errors: ValueError if they differ."""
        differences = [abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True)]
        difference = next((one for one in differences if math.isnan(one)), max(differences))
        self.checks.append({"what": what, "largest_relative_difference": difference, "tolerance": tolerance})
        if not difference <= tolerance:  # also true if a loss is NaN
            raise ValueError(f"{what}: losses {ours} and {theirs} differ by {difference:.1e}, more than {tolerance:.0e}")

    def leave_out(self, what, why):
        self.left_out.append({"what": what, "why": str(why)})

    def as_json(self):
        return {"ratios": self.ratios, "cells": self.cells, "checks": self.checks, "left_out": self.left_out}


def number(value):
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def markdown(head, rows):
    """Returns a Markdown table with aligned columns, which is readable in a terminal too."""
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    line = lambda cells: "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"
    return "\n".join([line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)])


def ratio_table(results):
    rows = [[ratio["what"], ratio["against"], number(ratio["median"]) + ratio["unit"], f"{number(ratio['min'])} to {number(ratio['max'])}"]
            for ratio in results.ratios]
    return markdown(["what", "against", "median", "least to most"], rows)


def cell_table(results):
    rows = [[cell["what"], cell["who"], number(cell["median"]), number(cell["min"]), number(cell["max"]), cell["unit"]]
            for cell in results.cells]
    return markdown(["what", "who", "median", "least", "most", "unit"], rows)


def report(results):
    parts = []
    if results.ratios:
        parts.append(ratio_table(results))
    if results.cells:
        parts.append(cell_table(results))
    parts += [f"left out: {entry['what']}: {entry['why']}" for entry in results.left_out]
    return "\n\n".join(parts)
