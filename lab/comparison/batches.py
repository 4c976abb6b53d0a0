"""Batches of samples: one order for both programs, and batches of samples of similar length."""

import json


class Batches:
    """Training data: a file, its samples in batches of `size`, and the settings that describe it to both programs.

    A subclass calls arrange() and defines `file`, `options` of Mylos, `without_dropout` (options that disable dropout), `of_peer()`
    (settings of the peer), and `tokens` (sample -> number of tokens) if grouped() is called.
    """

    counts = "tokens"  # the key of metrics.jsonl with the amount of data of a step
    unit = "real tokens/s"
    learning_rate = 3e-5

    def arrange(self, order, size, directory):
        self.order, self.size = order, size
        self.order_file = self.write_order(directory / "order.jsonl", 0)

    def write_order(self, path, first):
        """Writes all batches as a file for --order, beginning with batch `first`. Returns `path`."""
        path.write_text("".join(json.dumps(batch) + "\n" for batch in self.batches(first, len(self.order))), encoding="utf-8")
        return path

    def batch(self, step):
        return self.order[step % len(self.order)]

    def batches(self, first, count):
        return [self.batch(first + step) for step in range(count)]

    def grouped(self, turn, turns, count):
        """Returns `count` batches of samples of similar length. They cover all lengths evenly, and differ from turn to turn."""
        samples = sorted((sample for batch in self.order for sample in batch), key=lambda sample: self.tokens[sample])
        groups = [samples[first : first + self.size] for first in range(0, len(samples), self.size)]
        return [groups[int((part + (turn + 0.5) / turns) * len(groups) / count)] for part in range(count)]
