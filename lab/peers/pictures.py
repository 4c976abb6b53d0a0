"""ResNets on the images of `synthetic:COUNTxHxW`, with the pixels and labels that Mylos draws."""

import json
import pathlib

import numpy
import torch
import torchvision
from safetensors.torch import load_file

KEY = 0x73796E7468657469
LABELS_STREAM = 2**64 - 1
WORDS = 4  # 32-bit words per counter


def philox(low, high):
    """Returns Philox4x32-10 under KEY for uint64 arrays of counters, as (..., 4) uint32."""
    mask = numpy.uint64(0xFFFFFFFF)
    half = numpy.uint64(32)
    c0, c1, c2, c3 = low & mask, low >> half, high & mask, high >> half
    k0, k1 = KEY & 0xFFFFFFFF, KEY >> 32
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c0, numpy.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ numpy.uint64(k0), p1 & mask, (p0 >> half) ^ c3 ^ numpy.uint64(k1), p0 & mask
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack([c0, c1, c2, c3], axis=-1).astype("<u4")


def synthetic(count, size, labels):
    """Returns images, uint8 (count, size, size, 3), and labels, int64 (count)."""
    numbers = numpy.arange(count, dtype=numpy.uint64)
    offsets = numpy.arange(0, 3 * size * size, 4 * WORDS, dtype=numpy.uint64)
    words = philox(*numpy.broadcast_arrays(numbers[:, None], offsets[None, :]))
    pixels = words.reshape(count, -1).view(numpy.uint8)[:, : 3 * size * size].reshape(count, size, size, 3)
    drawn = philox(numbers, numpy.full(count, LABELS_STREAM, numpy.uint64))[:, 0].astype(numpy.uint64)
    return torch.from_numpy(pixels.copy()), torch.from_numpy((drawn * numpy.uint64(labels) >> numpy.uint64(32)).astype(numpy.int64))


class ImageClassification:
    """torchvision's ResNet, channels-last, trained by SGD with momentum. A sample is the number of an image."""

    def __init__(self, model, count, size, labels, mean, std):
        self.pixels, self.labels = synthetic(count, size, labels)
        self.mean, self.std = 255 * torch.tensor(mean), 255 * torch.tensor(std)

    def load(self, model, dropout):
        """Returns the model of a directory that `comparison/models.py` wrote. It has no dropout that could be replaced."""
        config = json.loads((pathlib.Path(model) / "config.json").read_text(encoding="utf-8"))
        made = getattr(torchvision.models, config["architecture"])(num_classes=len(config["id2label"]))
        if config.get("mylos_stem") == "cifar":
            made.conv1 = torch.nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
            made.maxpool = torch.nn.Identity()
        missing, unexpected = made.load_state_dict(load_file(pathlib.Path(model) / "model.safetensors"), strict=False)
        assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)
        return made.to(memory_format=torch.channels_last)

    def to(self, device):
        """Keeps all images on `device`, so that no step copies or converts them on the host."""
        self.pixels, self.labels, self.mean, self.std = (each.to(device) for each in (self.pixels, self.labels, self.mean, self.std))

    def collate(self, batch, padding):
        pixels = self.pixels[batch].float().sub_(self.mean).div_(self.std)
        return pixels.permute(0, 3, 1, 2), self.labels[batch]  # channels-last, without a copy

    def loss(self, model, images, labels):
        return torch.nn.functional.cross_entropy(model(images), labels)

    def optimizer(self, parameters, learning_rate):
        return torch.optim.SGD(parameters, lr=learning_rate, momentum=0.9)

    def clip(self, parameters):
        """Does nothing: training on images does not clip gradients."""

    def count(self, batch):
        return len(batch)
