"""Runs the Python lines of docs/watching.md on a run of the program, and checks what they print and pass on. Then runs the line of
docs/language-models.md that converts Parquet.

    check_python.py ROOT PROGRAM

pandas, TensorBoard and pyarrow are those that are installed, else stand-ins. W&B and MLflow are stand-ins always.
"""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import python_stand_ins

PAGE = "docs/watching.md"


def blocks(text):
    """Returns the indented blocks that begin with an import."""
    found, block = [], []
    for line in [*text.splitlines(), "end"]:
        if line.startswith("    "):
            block.append(line[4:])
            continue
        if block and block[0].startswith("import "):
            found.append("\n".join(block))
        block = []
    return found


def train(root, program):
    """Trains a tiny model in the working directory, with its results in runs/first."""
    sys.path.insert(0, str(root / "tests/jobs"))
    import tiny

    tiny.write_model(pathlib.Path("model"))
    tiny.write_questions(pathlib.Path("train.json"))
    subprocess.run([program, "train", "--model", "model", "--train", "train.json", "--dev", "train.json", "--output", "runs/first", "--steps", "8",
                    "--eval-every", "4", "--max-length", "60", "--doc-stride", "20", "--batch", "6"], check=True, capture_output=True)


def run(block):
    """Runs a block. Returns what it prints and what it logs."""
    python_stand_ins.LOGGED.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, PAGE, "exec"), {"__name__": "__main__"})
    return printed.getvalue(), dict(python_stand_ins.LOGGED)


def expect(condition, what):
    if not condition:
        sys.exit(f"{PAGE}: {what}")


def check_parquet(root):
    """Converts a file with nested rows in the working directory. The stand-in for pyarrow reads JSON instead of Parquet."""
    (line,) = re.findall(r"^    (python3 -c .*pyarrow.*)$", (root / "docs/language-models.md").read_text(encoding="utf-8"), re.MULTILINE)
    rows = [{"messages": [{"role": "user", "content": "Was heißt\n\"♞\"?"}, {"role": "assistant", "content": "Springer"}]},
            {"messages": [{"role": "user", "content": ""}]}, {"messages": []}]
    if importlib.util.find_spec("pyarrow"):
        import pyarrow
        import pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), "train.parquet", row_group_size=2)
    else:
        pathlib.Path("train.parquet").write_text(json.dumps(rows))
        pathlib.Path("pyarrow").mkdir()
        pathlib.Path("pyarrow/parquet.py").write_text(python_stand_ins.PARQUET)
    subprocess.run(line, shell=True, check=True, env=os.environ | {"PYTHONPATH": "."})
    written = [json.loads(text) for text in pathlib.Path("train.jsonl").read_text().splitlines()]
    expect(written == rows, f"{line}: wrote {written}")


def main(root, program):
    root, program = pathlib.Path(root).resolve(), str(pathlib.Path(program).resolve())
    pandas, *loggers = blocks((root / PAGE).read_text(encoding="utf-8"))
    expect(len(loggers) == 2 and all(len(block.splitlines()) == 5 for block in (pandas, *loggers)), "not three blocks of five lines")
    if any(importlib.util.find_spec(name) is None for name in ("pandas", "tensorboard")):
        python_stand_ins.install_readers()
    python_stand_ins.install_loggers()
    with tempfile.TemporaryDirectory(prefix="mylos-python.") as directory:
        os.chdir(directory)
        train(root, program)
        rows = [json.loads(line) for line in pathlib.Path("runs/first/metrics.jsonl").read_text().splitlines()]
        steps, evaluations = ([row for row in rows if row["kind"] == kind] for kind in ("step", "evaluation"))
        printed, _ = run(pandas)
        expect(str(steps[-1]["loss"])[:6] in printed and f"{evaluations[-1]['f1']:.3f}"[:5] in printed and "exact_match" in printed, printed)
        rounded = struct.unpack("<8f", struct.pack("<8f", *(row["loss"] for row in steps)))
        for block in loggers:
            _, logged = run(block)
            expect(logged.get("train/loss") == [(row["step"], loss) for row, loss in zip(steps, rounded, strict=True)], f"{block}\n{logged}")
            expect([step for step, _ in logged.get("eval/f1", [])] == [row["step"] for row in evaluations] == [4, 8], f"{block}\n{logged}")
        check_parquet(root)
        os.chdir(root)


if __name__ == "__main__":
    main(*sys.argv[1:])
