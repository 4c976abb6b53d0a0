#!/usr/bin/env python3
"""Records how Pillow decodes and resizes images, and pickles like CIFAR's and compressed files like MNIST's -> tests/golden/images/.

Needs the PyPI packages pillow and numpy. Recorded with pillow 13.0.0 (libjpeg-turbo 3.2.0), numpy 2.4.6, Python 3.11.
"""

import gzip
import io
import pickle
import struct
import zlib

import numpy as np
from PIL import Image
from common import GOLDEN, write_lines

HEIGHT, WIDTH = 21, 30


def picture(height=HEIGHT, width=WIDTH):
    """Returns a reproducible image with colour gradients, edges and some noise."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(7).integers(0, 40, (height, width, 3))
    planes = [x * 200 // width, y * 200 // height, ((x // 7 + y // 5) % 2) * 180]
    return Image.fromarray((np.stack(planes, axis=-1) + noise).astype(np.uint8))


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width, height, depth, color, rows, *chunks):
    """Returns a PNG of a form that Pillow does not write; rows are given as bytes."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + data + chunk(b"IEND", b"")


# Start and step of each Adam7 pass: x, y, dx, dy.
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def interlaced(pixels):
    """Returns an Adam7 PNG of an RGB array."""
    height, width, _ = pixels.shape
    parts = [pixels[y::dy, x::dx] for x, y, dx, dy in PASSES]
    data = b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def files():
    image = picture()
    rotated = Image.Exif()
    rotated[0x0112] = 6
    yield "jpeg baseline 4:2:0", saved(image, "JPEG", quality=80)
    yield "jpeg baseline 4:2:2", saved(image, "JPEG", quality=80, subsampling=1)
    yield "jpeg baseline 4:4:4", saved(image, "JPEG", quality=95, subsampling=0)
    yield "jpeg progressive", saved(image, "JPEG", quality=80, progressive=True)
    yield "jpeg restart intervals", saved(image, "JPEG", quality=80, restart_marker_blocks=1)
    yield "jpeg with orientation", saved(image, "JPEG", quality=80, exif=rotated)
    yield "jpeg grey", saved(image.convert("L"), "JPEG", quality=80)
    yield "jpeg CMYK", saved(image.convert("CMYK"), "JPEG", quality=80)
    yield "jpeg kept as RGB", saved(image, "JPEG", quality=80, keep_rgb=True)
    yield "png RGB", saved(image, "PNG")
    yield "png interlaced", interlaced(np.asarray(image))
    yield "png grey", saved(image.convert("L"), "PNG")
    yield "png black and white", saved(image.convert("1"), "PNG")
    for depth in (2, 4):
        yield f"png grey of {depth} bits", png(8, 2, depth, 0, [bytes(range(0x1B, 0x1B + depth)), bytes(range(0x9C, 0x9C + depth))])
    yield "png palette", saved(image.quantize(19), "PNG")
    yield "png palette of 4 colours", saved(image.quantize(4), "PNG")
    yield "png palette with transparency", saved(image.quantize(19), "PNG", transparency=bytes([0, 128, 255]))
    yield "png palette too short", png(4, 1, 8, 3, [bytes([0, 1, 2, 200])], chunk(b"PLTE", bytes([9, 8, 7, 6, 5, 4])))
    alpha = Image.fromarray(np.arange(HEIGHT * WIDTH, dtype=np.uint8).reshape(HEIGHT, WIDTH))
    with_alpha = image.copy()
    with_alpha.putalpha(alpha)
    yield "png RGB with alpha", saved(with_alpha, "PNG")
    yield "png grey with alpha", saved(Image.merge("LA", (image.convert("L"), alpha)), "PNG")
    yield "png RGB with a transparent colour", saved(image, "PNG", transparency=image.getpixel((3, 3)))
    yield "png grey with a transparent colour", saved(image.convert("L"), "PNG", transparency=40)
    values = np.random.default_rng(3).integers(0, 65536, (3, 8, 4)).astype(">u2")
    values[0, 2] = 77
    yield "png grey of 16 bits", png(32, 3, 16, 0, [(row // 150).astype(">u2").tobytes() for row in values])
    yield "png grey of 16 bits with alpha", png(16, 3, 16, 4, [row.tobytes() for row in values])
    yield "png RGB of 16 bits with alpha", png(8, 3, 16, 6, [row.tobytes() for row in values])
    yield "png RGB of 16 bits", png(8, 3, 16, 2, [row[:, :3].tobytes() for row in values])


def record_decoded():
    rows = []
    for name, content in files():
        with Image.open(io.BytesIO(content)) as image:
            rgb = image.convert("RGB")
        rows.append({"name": name, "file": content.hex(), "height": rgb.height, "width": rgb.width, "rgb": rgb.tobytes().hex()})
    write_lines("images/decoded.jsonl", rows)


def record_resized():
    source = picture(37, 53)
    rows = [{"channels": 3, "height": 37, "width": 53, "pixels": source.tobytes().hex()}]
    for height, width in [(16, 16), (19, 71), (60, 30), (37, 20), (60, 53), (1, 1), (5, 113), (36, 54), (3, 4)]:
        for image in (source, source.convert("L")):
            resized = image.resize((width, height), Image.BILINEAR)
            rows.append({"channels": len(image.getbands()), "height": height, "width": width, "pixels": resized.tobytes().hex()})
    rows.append({"channels": 1, "height": 37, "width": 53, "pixels": source.convert("L").tobytes().hex()})
    write_lines("images/resized.jsonl", rows)


def python2_batch(labels, data):
    """Returns a pickle as written by Python 2, with the opcodes of the official files."""
    begin = b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03U\x06labelsq\x04]q\x05("
    begin += b"".join(b"K" + bytes([label]) for label in labels) + b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07"
    begin += b"cnumpy\nndarray\nq\x08K\x00\x85q\x09U\x01b\x87q\x0aRq\x0b(K\x01K" + bytes([len(labels)]) + b"M\x00\x0c\x86q\x0c"
    begin += b"cnumpy\ndtype\nq\x0dU\x02u1K\x00K\x01\x87q\x0eRq\x0f(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
    begin += struct.pack("<i", data.size) + data.tobytes()
    return begin + b"tbU\x09filenamesq\x10]q\x11(U\x05a.pngq\x12h\x12eu."


def record_pickles():
    data = (np.arange(2 * 3072, dtype=np.int64).reshape(2, 3072) * 7 % 251).astype(np.uint8)
    batch = {"batch_label": "training batch 1 of 5", "labels": [6, 9], "data": data, "filenames": ["a.png", "a.png"]}
    fine = {"fine_labels": [19, 99], "coarse_labels": [11, 2], "data": data, "filenames": ["a.png", "b.png"]}
    names = {"label_names": [f"class {i}" for i in range(10)], "num_cases_per_batch": 10000, "num_vis": 3072, "ratio": 0.5, "big": 1 << 40}
    old = python2_batch([6, 9], data)
    read = pickle.loads(old, encoding="latin1")
    assert read["labels"] == [6, 9] and (read["data"] == data).all() and read["filenames"] == ["a.png", "a.png"]
    contents = {"CIFAR-10 of Python 2": old, "CIFAR-10 in protocol 2": pickle.dumps(batch, 2), "CIFAR-10 in protocol 4": pickle.dumps(batch, 4)}
    contents["CIFAR-10 in protocol 3"] = pickle.dumps(batch, 3)
    contents |= {"CIFAR-100 in protocol 4": pickle.dumps(fine, 4), "names in protocol 2": pickle.dumps(names, 2), "names in protocol 4": pickle.dumps(names, 4)}
    contents["float32"] = pickle.dumps(batch | {"data": np.zeros((2, 2), np.float32)}, 4)
    contents["Fortran"] = pickle.dumps(batch | {"data": np.asfortranarray(data[:, :4])}, 4)
    contents["a set"] = pickle.dumps({1, 2}, 4)
    contents["protocol 5"] = pickle.dumps(names, 5)
    write_lines("images/pickles.jsonl", [{"name": name, "file": content.hex()} for name, content in contents.items()])


def record_gzip():
    """Writes two images of 2 x 3 pixels with labels, and files of one image followed by 8 MiB of zeros, or with a wrong checksum."""
    header = struct.pack(">IIII", 0x803, 2, 2, 3)
    whole = gzip.compress(header + b"abcdefghijkl", mtime=0)
    contents = {"images": whole, "labels": gzip.compress(struct.pack(">II", 0x801, 2) + b"\x07\x09", mtime=0)}
    contents["bomb"] = gzip.compress(header + b"abcdefghijkl" + bytes(8 << 20), mtime=0)
    contents["wrong sum"] = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    write_lines("images/gzip.jsonl", [{"name": name, "file": content.hex()} for name, content in contents.items()])


def main():
    (GOLDEN / "images").mkdir(exist_ok=True)
    record_decoded()
    record_resized()
    record_pickles()
    record_gzip()


main()
