#!/usr/bin/env python3
"""Draws pictures of ten shapes with random size, position, angle and colours, as PNG files in class directories.

    draw_shapes.py DIRECTORY [--train N] [--dev N] [--size PIXELS]

Writes N pictures of each shape (200 and 50 by default), of 32 x 32 pixels, into DIRECTORY/train and DIRECTORY/dev. The same call
always draws the same pictures.
"""

import argparse
import math
import pathlib
import random
import struct
import zlib


def polygon(corners, inner=1.0):
    """Returns a test whether (x, y) is in a polygon around the origin. Its corners have radius 1, or `inner` for every second one."""
    points = [((1.0 if i % 2 == 0 else inner) * math.sin(2 * math.pi * i / corners),
               -(1.0 if i % 2 == 0 else inner) * math.cos(2 * math.pi * i / corners)) for i in range(corners)]

    def contains(x, y):
        inside = False
        for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
            if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
                inside = not inside
        return inside

    return contains


SHAPES = {
    "bars": lambda x, y: max(abs(x), abs(y)) < 0.9 and math.floor(x * 2.5 + 10.25) % 2 == 0,
    "checkers": lambda x, y: max(abs(x), abs(y)) < 0.9 and (math.floor(x * 1.7 + 10) + math.floor(y * 1.7 + 10)) % 2 == 0,
    "circle": lambda x, y: math.hypot(x, y) < 0.85,
    "crescent": lambda x, y: math.hypot(x, y) < 0.95 and math.hypot(x - 0.5, y) > 0.75,
    "cross": lambda x, y: min(abs(x), abs(y)) < 0.27 and max(abs(x), abs(y)) < 0.95,
    "frame": lambda x, y: 0.48 < max(abs(x), abs(y)) < 0.8,
    "hexagon": polygon(6),
    "ring": lambda x, y: 0.55 < math.hypot(x, y) < 0.95,
    "star": polygon(10, 0.42),
    "triangle": polygon(3),
}


def colour(draw):
    return tuple(draw.randrange(256) for _ in range(3))


def unlike(draw, other):
    """Returns a colour that is distinguishable from `other`."""
    while True:
        found = colour(draw)
        if sum(abs(a - b) for a, b in zip(found, other)) > 200:
            return found


def picture(contains, size, draw):
    """Returns a picture as rows of RGB bytes."""
    background = colour(draw)
    front = unlike(draw, background)
    radius = draw.uniform(0.28, 0.48) * size
    middle = [draw.uniform(radius, size - radius) for _ in range(2)]
    angle = draw.uniform(-0.4, 0.4)
    cosine, sine = math.cos(angle) / radius, math.sin(angle) / radius
    noise = draw.choice((4, 12, 24))
    rows = []
    for line in range(size):
        row = bytearray()
        for column in range(size):
            x, y = column + 0.5 - middle[0], line + 0.5 - middle[1]
            pixel = front if contains(x * cosine + y * sine, y * cosine - x * sine) else background
            row += bytes(min(255, max(0, value + draw.randint(-noise, noise))) for value in pixel)
        rows.append(bytes(row))
    return rows


def png(rows, size):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)  # 8 bits for each of three colours
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=200, metavar="N", help="pictures of each shape to train on")
    parser.add_argument("--dev", type=int, default=50, metavar="N", help="pictures of each shape to evaluate on")
    parser.add_argument("--size", type=int, default=32, metavar="PIXELS")
    options = parser.parse_args()
    for part, count in (("train", options.train), ("dev", options.dev)):
        for name, contains in SHAPES.items():
            folder = options.directory / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(count):
                draw = random.Random(f"{part} {name} {i}")
                (folder / f"{i:05}.png").write_bytes(png(picture(contains, options.size, draw), options.size))


if __name__ == "__main__":
    main()
