"""Batches of random images. Each program draws them itself, so nothing is read or decoded while a step is timed."""

from comparison.batches import Batches

COUNT = 128
LABELS = 1000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class PictureSet(Batches):
    """`synthetic:COUNTxPIXELSxPIXELS` in batches of `size` images. BatchNorm normalises over groups of `group` images, which is the whole
    batch by default, as in PyTorch."""

    counts = "images"
    unit = "images/s"
    learning_rate = 0.01
    without_dropout = []  # a ResNet has no dropout

    def __init__(self, directory, pixels, size, group=None, count=COUNT):
        directory.mkdir(parents=True, exist_ok=True)
        self.pixels, self.count = pixels, count
        self.file = f"synthetic:{count}x{pixels}x{pixels}"
        self.options = ["--batch-norm-group", str(group or size), "--mean", ",".join(map(str, MEAN)), "--std", ",".join(map(str, STD))]
        images = list(range(count))
        self.arrange([images[first : first + size] for first in range(0, count, size)], size, directory)

    def of_peer(self):
        return {"task": "image-classification", "count": self.count, "size": self.pixels, "labels": LABELS, "mean": MEAN, "std": STD}
