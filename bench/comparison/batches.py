"""Samples in batches: an order for both sides, and batches of samples of like length."""

import json


class Batches:
    """What training reads: a file, its samples in batches of `size`, and what both sides are told of it.

    A subclass gives `file`, `tokens` (sample -> tokens, where grouped() is asked for), `options` of our program,
    `without_dropout` (options that switch it off) and `of_peer()`, and calls arrange().
    """

    counts = "tokens"  # the key of metrics.jsonl that says how much a step trained on
    unit = "real tokens/s"
    learning_rate = 3e-5

    def arrange(self, order, size, directory):
        self.order, self.size = order, size
        self.order_file = self.write_order(directory / "order.jsonl", 0)

    def write_order(self, path, first):
        """All batches for --order, `first` at the front; returns `path`."""
        path.write_text("".join(json.dumps(batch) + "\n" for batch in self.batches(first, len(self.order))), encoding="utf-8")
        return path

    def batch(self, step):
        return self.order[step % len(self.order)]

    def batches(self, first, count):
        return [self.batch(first + step) for step in range(count)]

    def grouped(self, turn, turns, count):
        """`count` batches of samples of like length: spread evenly over the lengths, others in each of the turns."""
        samples = sorted((sample for batch in self.order for sample in batch), key=lambda sample: self.tokens[sample])
        groups = [samples[first : first + self.size] for first in range(0, len(samples), self.size)]
        return [groups[int((part + (turn + 0.5) / turns) * len(groups) / count)] for part in range(count)]
