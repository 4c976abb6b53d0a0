#!/usr/bin/env python3
"""Checks that `mylos classify` and transformers compute the same, on directories of transformers and on those of a run of Mylos.

    check_images.py MYLOS

Each directory names the image processor. Pictures that need no resizing must give the same probabilities to 1e-5. Other pictures are
resized in bytes by both programs, equal to one level in 255.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification, ConvNextImageProcessor, ResNetConfig, ResNetForImageClassification

LABELS = ["anchor", "buoy", "crane", "dock"]
SIZE, SHORTER = 32, 36  # the size, and the size divided by crop_pct
EXACT, OF_BYTES = 1e-5, 2e-3


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def make_model(directory, layer_type, resample):
    torch.manual_seed(len(layer_type) + resample)
    config = ResNetConfig(embedding_size=8, hidden_sizes=[16, 24], depths=[1, 2], layer_type=layer_type, num_labels=len(LABELS),
                          id2label=dict(enumerate(LABELS)), label2id={name: i for i, name in enumerate(LABELS)})
    model = ResNetForImageClassification(config)
    for name, values in model.named_buffers():
        if name.endswith("running_mean"):
            values.normal_(0, 0.2)
        elif name.endswith("running_var"):
            values.uniform_(0.5, 2)
    torch.nn.init.normal_(model.classifier[1].weight, std=0.5)
    model.save_pretrained(directory)
    ConvNextImageProcessor(size={"shortest_edge": SIZE}, crop_pct=SIZE / SHORTER, resample=resample, image_mean=[0.5, 0.4, 0.3],
                           image_std=[0.2, 0.3, 0.25]).save_pretrained(directory)
    return directory


def write_pictures(directory):
    """Writes a folder for each label. Returns the pictures that need no resizing, and those that do."""
    drawn = numpy.random.default_rng(5)
    exact, others = [], []
    for label in LABELS:
        (directory / label).mkdir(parents=True)
        for number, (height, width) in enumerate([(SHORTER, SHORTER), (SHORTER, 50), (61, 47), (25, 90)]):
            path = directory / label / f"{number}.png"
            smooth = Image.fromarray(drawn.integers(0, 256, (6, 8, 3), dtype=numpy.uint8)).resize((width, height), Image.Resampling.BICUBIC)
            smooth.save(path)
            (exact if number < 2 else others).append(path)
    return exact, others


def mylos_probabilities(mylos, model, pictures):
    lines = run(mylos, "classify", "--model", model, "--json", *pictures).splitlines()
    assert len(lines) == len(pictures)
    return [{label["label"]: label["probability"] for label in json.loads(line)["labels"]} for line in lines]


def transformers_probabilities(model, pictures):
    network = AutoModelForImageClassification.from_pretrained(model).eval()
    processor = AutoImageProcessor.from_pretrained(model, use_fast=False)  # Pillow's resizing
    with torch.no_grad():
        images = [Image.open(picture).convert("RGB") for picture in pictures]
        probabilities = network(**processor(images, return_tensors="pt")).logits.double().softmax(-1)
    return [{network.config.id2label[i]: value.item() for i, value in enumerate(row)} for row in probabilities]


def check(mylos, what, model, pictures, bound):
    worst = 0.0
    for picture, our, their in zip(pictures, mylos_probabilities(mylos, model, pictures), transformers_probabilities(model, pictures)):
        assert our.keys() == their.keys(), (what, picture, our, their)
        worst = max(worst, *(abs(our[label] - their[label]) for label in their))
        assert max(their.values()) < 0.999, (what, their)  # so that probabilities show the logits
    assert not math.isnan(worst) and worst <= bound, f"{what}: probabilities differ by {worst:.1e}, more than {bound:.0e}"
    print(f"{what}: {len(pictures)} pictures, probabilities within {worst:.1e}")


def main():
    mylos = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        exact, others = write_pictures(root / "pictures")
        for layer_type in ("basic", "bottleneck"):
            for resample, filter_name in ((2, "bilinear"), (3, "bicubic")):
                what = f"{layer_type}, {filter_name}"
                model = make_model(root / f"{layer_type}-{resample}", layer_type, resample)
                output = root / f"run-{layer_type}-{resample}"
                run(mylos, "train", "--model", model, "--train", root / "pictures", "--output", output, "--steps", 3, "--batch", 8,
                    "--batch-norm-group", 8, "--learning-rate", 0.02, "--gemm", "kokkos-kernels")
                for name, made in ((f"{what}, written by transformers", model), (f"{what}, written by a run", output / "last")):
                    check(mylos, name, made, exact, EXACT)
                    check(mylos, f"{name}, resized", made, others, OF_BYTES)


if __name__ == "__main__":
    main()
