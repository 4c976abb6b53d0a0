#!/usr/bin/env python3
"""Records two small runs of one version of the program, which later versions must be able to continue
-> tests/golden/recorded_run: a BERT of one layer (model/), 12 questions (questions.json), a run that finished
(finished/) and the same run interrupted by SIGUSR1 (interrupted/).

    lab/record/small_run.py build/release/mylos

Needs only Python. Recorded with the program of commit 4db94f6 (version 0.1.0). Never record it again with a later
program: old files must remain readable, so add another directory instead. run.json and the checkpoints contain the
paths of the files during recording, below /tmp/recorded_run; the test replaces them with its own.
"""

import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys

from common import GOLDEN, interrupt_run

WORK = pathlib.Path("/tmp/recorded_run")
HIDDEN, FEED_FORWARD, POSITIONS = 8, 16, 64
TEXTS = [
    ("the red fox runs far.", "red", "fox", "far"),
    ("a job waits in a queue.", "job", "waits", "queue"),
    ("stars burn gas, slowly.", "stars", "gas", "slowly"),
    ("5 nodes and 8 cores.", "5", "nodes", "8"),
]
OPTIONS = (
    "--max-length 60 --doc-stride 20 --batch 4 --learning-rate 1e-3 --dropout 0.1 --steps 60 --eval-every 15 "
    "--checkpoint-every 16 --keep 1 --n-best 3"
).split()


def vocabulary():
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return special + [p + c for p in ("", "##") for c in letters] + list(".,?!")


def tensors(draw):
    """Returns names, shapes and values."""

    def random_values(name, *shape):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        return name, shape, [draw.gauss(0.0, 0.1) for _ in range(count)]

    def linear(name, outputs, inputs):
        return [random_values(name + ".weight", outputs, inputs), (name + ".bias", (outputs,), [0.0] * outputs)]

    def norm(name):
        return [(name + ".weight", (HIDDEN,), [1.0] * HIDDEN), (name + ".bias", (HIDDEN,), [0.0] * HIDDEN)]

    layer = "bert.encoder.layer.0."
    return [
        random_values("bert.embeddings.word_embeddings.weight", len(vocabulary()), HIDDEN),
        random_values("bert.embeddings.position_embeddings.weight", POSITIONS, HIDDEN),
        random_values("bert.embeddings.token_type_embeddings.weight", 2, HIDDEN),
        *norm("bert.embeddings.LayerNorm"),
        *linear(layer + "attention.self.query", HIDDEN, HIDDEN),
        *linear(layer + "attention.self.key", HIDDEN, HIDDEN),
        *linear(layer + "attention.self.value", HIDDEN, HIDDEN),
        *linear(layer + "attention.output.dense", HIDDEN, HIDDEN),
        *norm(layer + "attention.output.LayerNorm"),
        *linear(layer + "intermediate.dense", FEED_FORWARD, HIDDEN),
        *linear(layer + "output.dense", HIDDEN, FEED_FORWARD),
        *norm(layer + "output.LayerNorm"),
        *linear("qa_outputs", 2, HIDDEN),
    ]


def write_safetensors(path, named):
    header, data = {}, b""
    for name, shape, values in named:
        values = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_model(directory):
    directory.mkdir()
    config = {
        "model_type": "bert",
        "vocab_size": len(vocabulary()),
        "hidden_size": HIDDEN,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": FEED_FORWARD,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": true}\n')
    (directory / "vocab.txt").write_text("\n".join(vocabulary()) + "\n")
    write_safetensors(directory / "model.safetensors", tensors(random.Random(1)))


def questions():
    paragraphs = []
    for number, (context, *answers) in enumerate(TEXTS):
        asked = [
            {
                "id": f"q{number}{index}",
                "question": f"what is q{number}{index}?",
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            for index, answer in enumerate(answers, 1)
        ]
        paragraphs.append({"context": context, "qas": asked})
    return {"version": "1.1", "data": [{"title": "small", "paragraphs": paragraphs}]}


def command(program, output):
    files = ["--model", "model", "--train", "questions.json", "--dev", "questions.json", "--output", output]
    return [program, "train", *files, *OPTIONS]


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    target = GOLDEN / "recorded_run"
    assert not target.exists(), f"{target} is there: old files have to stay readable"
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    write_model(WORK / "model")
    (WORK / "questions.json").write_text(json.dumps(questions(), indent=1) + "\n")
    subprocess.run(command(program, "finished"), cwd=WORK, check=True)
    while not interrupt_run(command(program, "interrupted"), WORK / "interrupted", 20):
        pass
    shutil.copytree(WORK, target, ignore=shutil.ignore_patterns(".lock", "events.out.*", "last"))


main()
