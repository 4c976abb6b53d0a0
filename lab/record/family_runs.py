#!/usr/bin/env python3
"""Records a run of each model family, stopped in the middle, which later versions must be able to continue
-> tests/golden/run_<commit>/<family>: the model (model/), prepared data (train.h5), the command without the program (command.txt), the
stopped run (run/), and the metrics of the same run without a stop (whole.jsonl).

    lab/record/family_runs.py build/release/mylos

Needs only Python. Recorded with the program of commit be1598fc. Never record it again with a later program: old files must remain
readable; a later program writes another directory. A run keeps the absolute path of its model, so the commands name their files below
/proc/self/cwd, and continue from the directory of any copy.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from common import GOLDEN, ROOT, interrupt_run

STEPS, EVERY = 12, 4
STOPS = range(EVERY + 2, STEPS - 3)  # after an evaluation and more steps, and long before the end
HERE = "/proc/self/cwd/"
LLAMA = {
    "model_type": "llama", "vocab_size": 288, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
RESNET = {
    "model_type": "resnet", "layer_type": "basic", "num_channels": 3, "embedding_size": 8, "hidden_sizes": [8, 16],
    "depths": [1, 1], "num_labels": 10,
}  # fmt: skip


def write_bert(model):
    """Copies the BERT of one layer of small_run.py, and returns its questions."""
    shutil.copytree(GOLDEN / "recorded_run/model", model)
    return GOLDEN / "recorded_run/questions.json"


def write_llama(model):
    """Writes a Llama without weights and the tokenizer of the example games, and returns games."""
    shutil.copytree(ROOT / "examples/chess/model", model)
    (model / "config.json").write_text(json.dumps(LLAMA, indent=1) + "\n")
    return ROOT / "examples/chess/dev.pgn"


def write_resnet(model):
    """Writes a ResNet without weights, draws pictures beside it, and returns their directory."""
    model.mkdir()
    (model / "config.json").write_text(json.dumps(RESNET, indent=1) + "\n")
    drawn = ROOT / "examples/shapes/draw_shapes.py"
    pictures = model.parent / "pictures"
    subprocess.run([sys.executable, drawn, pictures, "--train", "4", "--dev", "1", "--size", "16"], check=True)
    return pictures / "train"


# What writes the model and names its data, options of prepare and train, and options of train.
FAMILIES = {
    "bert": (write_bert, "--max-length 60 --doc-stride 20",
             "--batch 4 --learning-rate 1e-2 --dropout 0.1 --weight-decay 0.01 --n-best 3"),
    "llama": (write_llama, "--max-length 32", "--batch 4 --learning-rate 1e-2 --weight-decay 0.01"),
    "resnet": (write_resnet, "",
               "--batch 8 --batch-norm-group 4 --image-size 16 --augment crop-flip --optimizer sgd --learning-rate 1e-2"),
}  # fmt: skip


def checkpoint_step(run):
    return int((run / "checkpoints/latest").read_text().split("-")[1].split(".")[0])


def record(program, directory, family):
    write, shared, own = FAMILIES[family]
    directory.mkdir()
    data = write(directory / "model")
    prepare = ["prepare", "--model", "model", "--data", data, "--output", "train.h5", *shared.split()]
    subprocess.run([program, *prepare], cwd=directory, check=True)
    options = f"{shared} {own} --steps {STEPS} --eval-every {EVERY}"
    files = [word for name, file in (("model", "model"), ("train", "train.h5"), ("dev", "train.h5"), ("output", "run"))
             for word in (f"--{name}", HERE + file)]  # fmt: skip
    words = ["train", *files, *options.split()]
    subprocess.run([program, *words], cwd=directory, check=True)
    shutil.move(directory / "run/metrics.jsonl", directory / "whole.jsonl")
    run = directory / "run"
    while not interrupt_run([program, *words], run, STOPS.start) or checkpoint_step(run) not in STOPS:
        pass
    (directory / "command.txt").write_text(" ".join(words) + "\n")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    commit = json.loads(subprocess.check_output([program, "info", "--json"]))["commit"]
    target = GOLDEN / f"run_{commit[:8]}"
    assert not target.exists(), f"{target} is there: old files have to stay readable"
    with tempfile.TemporaryDirectory() as work:
        for family in FAMILIES:
            record(program, pathlib.Path(work) / family, family)
        shutil.copytree(work, target, ignore=shutil.ignore_patterns(".lock", "events.out.*", "pictures"))


main()
