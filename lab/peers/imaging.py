#!/usr/bin/env python3
"""Runs torchvision's ImageFolder pipeline on JPEG files in one thread. Reads commands from stdin (see serving.py)."""

import pathlib
import time

import numpy
import torch
from PIL import Image
from serving import serve
from torchvision import datasets, transforms

BATCH = 32
CROP_FRACTION = 0.875


class Imaging:
    def write(self, pictures, directory):
        """Writes a class directory for each kind of file. JPEG files are copied, others become JPEG of a camera's usual quality."""
        for picture in map(pathlib.Path, pictures):
            target = pathlib.Path(directory) / picture.suffix[1:] / f"{picture.stem}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            if picture.suffix == ".jpg":
                target.write_bytes(picture.read_bytes())
            else:
                Image.open(picture).convert("RGB").save(target, quality=95)

    def load(self, directory, size, mean, std):
        torch.set_num_threads(1)
        self.evaluation = datasets.ImageFolder(directory, transforms.Compose([transforms.Resize(int(size / CROP_FRACTION)), transforms.CenterCrop(size)]))
        augmented = transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                        transforms.Normalize(mean, std)])
        self.training = torch.utils.data.DataLoader(datasets.ImageFolder(directory, augmented), batch_size=BATCH)
        return {"images": len(self.evaluation)}

    def evaluate(self, output):
        """Writes the pixels of all images as an evaluation sees them, one byte per channel."""
        pathlib.Path(output).write_bytes(b"".join(numpy.asarray(image).tobytes() for image, _ in self.evaluation))

    def passes(self, count):
        begin = time.perf_counter()
        images = sum(len(labels) for _ in range(count) for _, labels in self.training)
        return {"seconds": time.perf_counter() - begin, "images": images}


imaging = Imaging()
serve({"write": imaging.write, "load": imaging.load, "evaluate": imaging.evaluate, "passes": imaging.passes})
