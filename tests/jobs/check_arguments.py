"""Checks what job scripts tell `mylos train` of the batch, with a launcher that prints it.

    check_arguments.py SCRIPTS
"""

import os
import pathlib
import subprocess
import sys

BATCHES = {"TOTAL_BATCH_SIZE": "64", "BATCH_SIZE_PER_DEVICE": "4"}
GIVEN = {"MODEL": "model", "TRAIN": "train", "OUTPUT": "no-such-run", "MYLOS": "true", "LAUNCHER": "echo", "OPTIONS": "--epochs 3"}


def told(script, **batches):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS"))}
    environment.update(GIVEN, SCRIPT=str(script), **batches)
    done = subprocess.run(["bash", script], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{script}: exit code {done.returncode}: {done.stderr}")
    return done.stdout.split()


def breaches(script):
    usual = told(script)
    if usual[-2:] != ["--epochs", "3"] or {"--batch", "--micro-batch"} & set(usual):
        yield f"with no batch set it passes {usual}"
    for given, words in (({}, []), ({"TOTAL_BATCH_SIZE": "64"}, ["--batch", "64"]),
                         ({"BATCH_SIZE_PER_DEVICE": "4"}, ["--micro-batch", "4"]),
                         (BATCHES, ["--batch", "64", "--micro-batch", "4"])):
        if told(script, **given) != usual[:-2] + words + usual[-2:]:
            yield f"with {given} it passes {told(script, **given)}"


def main(folder):
    scripts = [file for file in sorted(pathlib.Path(folder).resolve().rglob("*")) if file.is_file() and file.stem != "compare"]
    found = [f"{script}: {breach}" for script in scripts for breach in breaches(script)]
    print("\n".join(found))
    return 1 if found or len(scripts) < 6 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
