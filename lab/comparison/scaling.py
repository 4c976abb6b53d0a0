"""Measures training steps on generated models and texts of exact length, and fits a formula to their cost."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from comparison.models import make_random_bert
from comparison.mylos import run, steps_of

QUESTION = "which mill ?"  # three tokens: each word is in the vocabulary
WORD = "mill"
WARM_UPS = 2
LENGTHS = (32, 64, 96, 128, 192, 256, 320, 384, 448, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
LAYERS = (2, 4, 6, 8, 12, 16, 20, 24)
BASE = {"length": 128, "batch": 8, "layers": 6}
SHAPE = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}


def write_questions(path, length, count):
    """Writes questions with one window of `length` tokens each: [CLS] question [SEP] words [SEP]."""
    words = length - 3 - len(QUESTION.split())
    context = " ".join([WORD] * words)
    rows = [{"id": f"q{number}", "context": context, "question": QUESTION, "answers": {"text": [WORD], "answer_start": [0]}}
            for number in range(count)]
    path.write_text(json.dumps({"version": "1.1", "data": rows}))
    return path


def sweeps():
    """Returns {varied parameter: points}; each point is a complete {length, batch, layers}."""
    return {"length": [dict(BASE, length=length) for length in LENGTHS],
            "batch": [dict(BASE, batch=batch) for batch in BATCHES],
            "layers": [dict(BASE, layers=layers) for layers in LAYERS]}


class Laboratory:
    """Measures points in a scratch directory."""

    def __init__(self, program, vocabulary, directory, threads):
        self.program, self.vocabulary, self.directory, self.threads = program, vocabulary, directory, threads

    def model(self, layers):
        folder = self.directory / f"layers-{layers}"
        return folder if folder.exists() else make_random_bert(folder, self.vocabulary, {**SHAPE, "num_hidden_layers": layers})

    def seconds(self, point, steps):
        """Returns the median seconds of a step after the warm-up. Errors: RuntimeError if a window has another length."""
        data = write_questions(self.directory / "data.json", point["length"], point["batch"])
        output = self.directory / "run"
        run([self.program, "train", "--model", self.model(point["layers"]), "--train", data, "--output", output, "--batch",
             point["batch"], "--micro-batch", point["batch"], "--steps", WARM_UPS + steps, "--max-length", 512, "--learning-rate",
             "1e-5", "--checkpoint-every", "never"], self.threads)
        records = steps_of(output)
        shutil.rmtree(output)
        tokens = point["batch"] * point["length"]
        if any(record["tokens"] != tokens for record in records):
            raise RuntimeError(f"a step has {records[0]['tokens']} tokens, expected {tokens}")
        return statistics.median(record["seconds"] for record in records[WARM_UPS:])


def steps_for(point):
    """Returns the number of steps, chosen so that every point takes about the same time."""
    work = point["batch"] * point["length"] * point["layers"]
    return max(4, min(40, 60_000 // work))


def measure(laboratory, rounds):
    """Returns the points of every sweep with their median seconds. Each round measures all points in turns."""
    found = {name: [dict(point, samples=[]) for point in points] for name, points in sweeps().items()}
    for turn in range(rounds):
        for name, points in found.items():
            print(f"{name}: round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
            for point in points:
                point["samples"].append(laboratory.seconds(point, steps_for(point)))
    for points in found.values():
        for point in points:
            point["seconds"] = statistics.median(point["samples"])
    return found


def solve(matrix, right):
    """Solves a small linear system by Gaussian elimination with pivoting."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(len(rows)):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [row[-1] / row[index] for index, row in enumerate(rows)]


def terms(point):
    """Returns the terms of a step's seconds: a constant; one per layer (mostly the update of the parameters); one per layer and token;
    and one per layer, token and token of its sequence (attention)."""
    tokens, layers = point["batch"] * point["length"], point["layers"]
    return [1.0, layers, tokens * layers, tokens * point["length"] * layers]


def fit(points):
    """Returns the coefficients of `terms` by least squares of the relative error, and the relative deviation of each point."""
    lines = [[term / point["seconds"] for term in terms(point)] for point in points]
    size = len(lines[0])
    normal = [[sum(line[i] * line[j] for line in lines) for j in range(size)] for i in range(size)]
    scale = [normal[i][i] ** 0.5 for i in range(size)]
    scaled = [[normal[i][j] / scale[i] / scale[j] for j in range(size)] for i in range(size)]
    found = solve(scaled, [sum(line[i] for line in lines) / scale[i] for i in range(size)])
    coefficients = [value / scale[i] for i, value in enumerate(found)]
    deviations = [predicted(coefficients, point) / point["seconds"] - 1 for point in points]
    return coefficients, deviations


def predicted(coefficients, point):
    return sum(coefficient * term for coefficient, term in zip(coefficients, terms(point)))
