"""Questions for comparisons: drawn from SQuAD with a fixed seed, with the order of the batches."""

import json
import os
import pathlib
import random
import subprocess

from comparison.batches import Batches

MAX_LENGTH = 384
STRIDE = 128
BATCH = 8
WINDOWS = ["--max-length", str(MAX_LENGTH), "--doc-stride", str(STRIDE)]


def flat_rows(path):
    with open(path, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in articles:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answers = question["answers"]
                yield {"id": question["id"], "context": paragraph["context"], "question": question["question"],
                       "answers": {"text": [answer["text"] for answer in answers],
                                   "answer_start": [answer["answer_start"] for answer in answers]}}


def write_rows(path, rows):
    path.write_text(json.dumps({"version": "1.1", "data": rows}), encoding="utf-8")
    return path


def first_questions(source, target, count):
    """Writes the first `count` questions in order. Adjacent questions share a context, as in any evaluation."""
    return write_rows(target, [row for row, _ in zip(flat_rows(source), range(count))])


class TrainingSet(Batches):
    """A file of randomly drawn questions, and their windows in random batches of `size` sequences."""

    options = WINDOWS
    without_dropout = ["--dropout", "0"]

    def __init__(self, program, model, source, directory, batches, seed=7, size=BATCH, environment=None):
        """`environment`: that of the program, if it differs from that of this process."""
        rows = random.Random(seed).sample(list(flat_rows(source)), batches * size)
        self.file = self.questions = write_rows(directory / "train.json", rows)
        self.windows = directory / "windows.jsonl"
        self.tokens = token_counts(program, model, self.questions, self.windows, environment)
        windows = sorted(self.tokens)
        random.Random(seed).shuffle(windows)
        self.arrange([windows[first : first + size] for first in range(0, batches * size, size)], size, directory)

    def of_peer(self):
        return {"windows": str(self.windows), "max_length": MAX_LENGTH}


def token_counts(program, model, questions, prepared, environment=None):
    """Writes the windows of `mylos prepare` to the file `prepared`. Returns {(question id, window index): number of tokens}."""
    subprocess.run([program, "prepare", "--model", model, "--data", questions, "--output", prepared, *WINDOWS], check=True,
                   capture_output=True, text=True, env=environment)
    with open(prepared, encoding="utf-8") as file:
        windows = map(json.loads, file)
        return {(window["id"], window["window"]): len(window["input_ids"]) for window in windows}


def data_directory(root):
    """Returns the directory of SQuAD and the vocabulary: $MYLOS_DATA, or one beside the tree."""
    return pathlib.Path(os.environ.get("MYLOS_DATA", root.parent / "shared/data"))
