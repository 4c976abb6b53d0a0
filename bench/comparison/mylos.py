"""Runs of our program: one that trains and stands still between its turns, and short ones."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from comparison.questions import WINDOWS

MANY_STEPS = 1_000_000


# Open MPI wants a superuser, as in a container, to say that this is meant.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def environment(threads):
    """`threads` None: as many as the launcher leaves to each rank."""
    if threads is not None:
        return dict(os.environ, OMP_NUM_THREADS=str(threads))
    return {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | AS_ROOT


def training_command(program, model, data, output, steps, *options, order=None):
    """`order`: a file in place of the data's own."""
    return [program, "train", "--model", model, "--train", data.file, "--order", order or data.order_file, "--output", output, "--steps",
            str(steps), "--batch", str(data.size), "--micro-batch", str(data.size), "--learning-rate", str(data.learning_rate), "--schedule", "constant",
            "--checkpoint-every", "never", *data.options, *options]


def steps_of(output):
    """The steps that a run has written, as metrics.jsonl has them."""
    path = pathlib.Path(output) / "metrics.jsonl"
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [record for record in map(json.loads, whole.splitlines()) if record.get("kind", "step") == "step" and "loss" in record]


def run(command, threads):
    """Standard error of a run that must succeed, and its peak resident memory in bytes."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=environment(threads))
    with process.stderr:
        errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]}: {(errors.strip() or 'no message').splitlines()[-1]}")
    return errors, usage.ru_maxrss * 1024


def run_json(command, threads):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(threads))
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]}: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    return json.loads(done.stdout)


def evaluate(program, model, questions, output, threads):
    """Windows, seconds and mean loss of the predictions of `mylos eval`."""
    errors, _ = run([program, "eval", "--model", model, "--data", questions, "--output", output, *WINDOWS], threads)
    found = re.search(r"predicted (\d+) windows in ([\d.]+) s, .*validation loss ([\d.]+)", errors)
    if not found:
        raise RuntimeError("mylos eval did not say how long its predictions took")
    return {"windows": int(found[1]), "seconds": float(found[2]), "loss": float(found[3])}


class StandingRun:
    """`mylos train` as a process that is stopped (SIGSTOP) but in its turns.

    The step in which it is stopped has a wall time that means nothing; each turn leaves it out.
    """

    def __init__(self, command, output, threads, log):
        self.output = output
        self.log = log
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=errors, env=environment(threads))
        self.done = 0
        self._wait_for(2)
        self._stop()

    def turn(self, steps):
        """Lets it train; returns the index (from 0) of the first of `steps` whole steps, and their records."""
        self.process.send_signal(signal.SIGCONT)
        first = self.done + 1
        self._wait_for(first + steps)
        self._stop()
        return first, steps_of(self.output)[first : first + steps]

    def _wait_for(self, steps):
        while len(steps_of(self.output)) < steps:
            if self.process.poll() is not None:
                lines = pathlib.Path(self.log).read_text().strip().splitlines()
                raise RuntimeError(f"mylos train ended: {lines[-1] if lines else 'no message'}")
            time.sleep(0.02)

    def _stop(self):
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
        self.done = len(steps_of(self.output))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
