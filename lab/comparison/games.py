"""Texts for comparing language models, as token ids that both programs read: chess games, or random ids."""

import json
import random
import subprocess

from comparison.batches import Batches
from comparison.questions import BATCH

MAX_LENGTH = 512
PIECES = 512  # of the tokenizer of examples/chess


class GameSet(Batches):
    """A file of games, and a selection of them in random batches of `size`. Long games are truncated, as in the lab's script."""

    without_dropout = []  # Llama has no dropout

    def __init__(self, program, model, source, directory, batches, seed=7, size=BATCH, max_length=MAX_LENGTH, environment=None):
        """`environment`: that of the program, if it differs from that of this process."""
        self.file = source
        self.options = ["--max-length", str(max_length), "--long", "truncate"]
        self.prepared = directory / "prepared.jsonl"
        command = [program, "prepare", "--model", model, "--data", source, "--output", self.prepared, *self.options]
        subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, env=environment)
        with open(self.prepared, encoding="utf-8") as file:
            self.tokens = [len(json.loads(line)["input_ids"]) for line in file]
        games = random.Random(seed).sample(range(len(self.tokens)), batches * size)
        self.arrange([games[first : first + size] for first in range(0, batches * size, size)], size, directory)

    def of_peer(self):
        return {"task": "language-modeling", "samples": str(self.prepared)}


def write_random_ids(path, texts, tokens, pieces, seed=7):
    """Writes `texts` lines of `tokens` random ids below `pieces`; the first three ids are special tokens. Returns `path`."""
    draw = random.Random(seed)
    rows = ([draw.randrange(3, pieces) for _ in range(tokens)] for _ in range(texts))
    path.write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows), encoding="utf-8")
    return path
