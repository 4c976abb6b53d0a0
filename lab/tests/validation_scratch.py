"""What the tests of lab/validate-gpu share: a scratch directory, and a bundle with the programs under test (sys.argv)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

SCRIPT = ROOT / "lab/validate-gpu"
HANG_LIMIT = 600  # seconds; ends only what hangs
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "which", "mill", "?", "the", "a"]


def write(path, text, executable=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if executable:
        path.chmod(0o755)
    return path


def link(path, to):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(pathlib.Path(to).resolve())


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)

    def make_bundle(self, **manifest):
        """Makes a folder like an unpacked bundle, with the programs under test."""
        folder = self.directory / "bundle"
        write(folder / "manifest.json", json.dumps({"architecture": 90, "cuda": "13.0", "commit": "abc", **manifest}))
        for build in ("gpu", "cpu"):
            link(folder / build / "bin/mylos", sys.argv[1])
            for program in sys.argv[2:]:
                link(folder / build / "bin" / pathlib.Path(program).name, program)
        paragraphs = [{"context": " ".join(["mill"] * (number % 30 + 1)),
                       "qas": [{"id": f"q{number}", "question": "which mill ?", "answers": [{"text": "mill", "answer_start": 0}]}]}
                      for number in range(60)]
        write(folder / "data/squad/v1.1/train.json", json.dumps({"version": "1.1", "data": [{"title": "mills", "paragraphs": paragraphs}]}))
        write(folder / "data/vocab/bert-base-uncased.txt", "\n".join(WORDS) + "\n")
        return folder

    def validate(self, *words, **environment):
        # This Python has no PyTorch, so that the peers are left out on every machine.
        names = {**os.environ, "OMP_NUM_THREADS": "1", "MYLOS_PYTHON": "/bin/false", **environment}
        return subprocess.run([SCRIPT, "--output", self.directory / "results", *map(str, words)], capture_output=True, text=True, env=names)

    def path_with(self, **scripts):
        """Returns a PATH whose first folder contains these programs."""
        for name, text in scripts.items():
            write(self.directory / "path" / name.replace("_", "-"), f"#!/bin/sh\n{text}\n", executable=True)
        return f"{self.directory / 'path'}:{os.environ['PATH']}"
