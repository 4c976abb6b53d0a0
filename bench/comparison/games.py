"""Chess games for comparing language models, as token ids that both programs read."""

import json
import random
import subprocess

from comparison.batches import Batches
from comparison.questions import BATCH

MAX_LENGTH = 512


class GameSet(Batches):
    """A file of games, and a selection of them in random batches of `size`. Long games are truncated, as in the lab's script."""

    options = ["--max-length", str(MAX_LENGTH), "--long", "truncate"]
    without_dropout = []  # Llama has no dropout

    def __init__(self, program, model, source, directory, batches, seed=7, size=BATCH):
        self.file = source
        self.prepared = directory / "prepared.jsonl"
        command = [program, "prepare", "--model", model, "--data", source, "--output", self.prepared, *self.options]
        subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        with open(self.prepared, encoding="utf-8") as file:
            self.tokens = [len(json.loads(line)["input_ids"]) for line in file]
        games = random.Random(seed).sample(range(len(self.tokens)), batches * size)
        self.arrange([games[first : first + size] for first in range(0, batches * size, size)], size, directory)

    def of_peer(self):
        return {"task": "language-modeling", "samples": str(self.prepared)}
