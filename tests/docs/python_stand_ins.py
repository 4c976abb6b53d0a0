"""Stand-ins for the Python packages that the documentation names, which check the calls; those for docs/watching.md read the same files.
They are used for packages that are not installed.
"""

import json
import pathlib
import struct
import sys
import types


class Frame:
    """The functions of pandas.DataFrame and pandas.Series that the page calls."""

    def __init__(self, rows):
        self.rows = rows

    def __getattr__(self, column):
        return Frame([row[column] for row in self.rows])

    def __eq__(self, value):
        return [each == value for each in self.rows]

    def __getitem__(self, chosen):
        if all(isinstance(each, bool) for each in chosen):
            return Frame([row for row, kept in zip(self.rows, chosen, strict=True) if kept])
        return Frame([{name: row[name] for name in chosen} for row in self.rows])

    def tail(self):
        return Frame(self.rows[-5:])

    def __str__(self):
        return str(self.rows)


def read_json(file, lines):
    text = pathlib.Path(file).read_text(encoding="utf-8")
    return Frame([json.loads(line) for line in text.splitlines()] if lines else json.loads(text))


def fields(message):
    """Yields (field, value) of a protocol buffer: integers, 8 bytes, 4 bytes or bytes with a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at:at + size]
        at += size


class EventAccumulator:
    """TensorBoard's reader of event files: records of length, checksum, Event and checksum."""

    def __init__(self, directory, size_guidance):
        assert size_guidance == {"scalars": 0}, "else points are left out"
        self.files, self.points = sorted(pathlib.Path(directory).glob("events.out.tfevents.*")), {}

    def Reload(self):
        for data in (file.read_bytes() for file in self.files):
            while data:
                size = struct.unpack("<Q", data[:8])[0]
                self.take(dict(fields(data[12:12 + size])))
                data = data[16 + size:]
        return self

    def take(self, event):
        for _, value in fields(event.get(5, b"")):
            found = dict(fields(value))
            if 2 in found:
                point = types.SimpleNamespace(step=event.get(2, 0), value=struct.unpack("<f", found[2])[0])
                self.points.setdefault(found[1].decode(), []).append(point)

    def Tags(self):
        return {"scalars": list(self.points)}

    def Scalars(self, tag):
        return self.points[tag]


# Stands for pyarrow.parquet, with batches of two rows.
PARQUET = """
import json


class ParquetFile:
    def __init__(self, file):
        self.rows = json.load(open(file))

    def iter_batches(self):
        return [Batch(self.rows[:2]), Batch(self.rows[2:])]


class Batch:
    def __init__(self, rows):
        self.rows = rows

    def to_pylist(self):
        return self.rows
"""
LOGGED = {}  # {tag: [(step, value), ...]}: what wandb and mlflow were given


class Run:
    """A run of wandb or mlflow. As in wandb, steps may only rise."""

    def __init__(self, **options):
        self.step = -1

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def log(self, values, step):
        assert step >= self.step, "wandb leaves out a step before the last one"
        self.step = step
        for tag, value in values.items():
            log_metric(tag, value, step)


def log_metric(tag, value, step):
    LOGGED.setdefault(tag, []).append((step, value))


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made


def install_loggers():
    """Replaces the packages that send the points elsewhere."""
    module("wandb", init=Run)
    module("mlflow", start_run=Run, log_metric=log_metric)


def install_readers():
    module("pandas", read_json=read_json, Series=lambda values: values)
    accumulator = "tensorboard.backend.event_processing.event_accumulator"
    for end in ("tensorboard", "tensorboard.backend", "tensorboard.backend.event_processing"):
        module(end)
    module(accumulator, EventAccumulator=EventAccumulator)
