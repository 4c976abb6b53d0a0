"""Runs Mylos: as a training process that is paused between its turns, and in short commands."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from comparison.questions import WINDOWS

MANY_STEPS = 1_000_000


# Open MPI refuses to run as root, as in a container, without these variables.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def environment(threads):
    """Returns the environment of a run. If `threads` is None, the launcher decides the threads of each rank."""
    if threads is not None:
        return dict(os.environ, OMP_NUM_THREADS=str(threads))
    return {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | AS_ROOT


def training_command(program, model, data, output, steps, *options, order=None):
    """Returns the command line of a training run. `order` replaces the order file of `data`."""
    return [program, "train", "--model", model, "--train", data.file, "--order", order or data.order_file, "--output", output, "--steps",
            str(steps), "--batch", str(data.size), "--micro-batch", str(data.size), "--learning-rate", str(data.learning_rate), "--schedule", "constant",
            "--checkpoint-every", "never", *data.options, *options]


def steps_of(output):
    """Returns the complete step records of a run's metrics.jsonl."""
    path = pathlib.Path(output) / "metrics.jsonl"
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [record for record in map(json.loads, whole.splitlines()) if record.get("kind", "step") == "step" and "loss" in record]


def run(command, threads):
    """Runs a command. Returns its standard error and its peak resident memory in bytes. Errors: RuntimeError if it fails."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=environment(threads))
    with process.stderr:
        errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        lines = errors.strip().splitlines() or ["no message"]
        reason = next((line for line in lines if line.startswith("mylos: error:")), lines[-1])  # launchers print more after it
        raise RuntimeError(f"{command[0]} {command[1]}: {reason}")
    return errors, usage.ru_maxrss * 1024


def run_json(command, threads):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(threads))
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]}: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    return json.loads(done.stdout)


def evaluate(program, model, questions, output, threads):
    """Runs `mylos eval`. Returns windows, seconds and mean loss of its predictions."""
    errors, _ = run([program, "eval", "--model", model, "--data", questions, "--output", output, *WINDOWS], threads)
    found = re.search(r"predicted (\d+) windows in ([\d.]+) s, .*validation loss ([\d.]+)", errors)
    if not found:
        raise RuntimeError("mylos eval did not say how long its predictions took")
    return {"windows": int(found[1]), "seconds": float(found[2]), "loss": float(found[3])}


class StandingRun:
    """A process of `mylos train` that is stopped (SIGSTOP) outside its turns.

    Results are read a step late: when a step's record is written, the next step has been computed, and the one after it begins. The
    process is stopped in that one, the second without a record. Its wall time is meaningless, so each turn leaves out both.
    """

    UNRECORDED = 2

    def __init__(self, command, output, threads, log):
        self.output = output
        self.log = log
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=errors, env=environment(threads))
        self.done = 0
        self._wait_for(2)
        self._stop()

    def turn(self, steps):
        """Continues training for `steps` whole steps. Returns the index (from 0) of the first one, and their records."""
        self.process.send_signal(signal.SIGCONT)
        first = self.done + self.UNRECORDED
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
