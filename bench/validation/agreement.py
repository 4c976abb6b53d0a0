"""Part 1: checks that GPU and CPU compute the same losses, and that each resumes from the other's checkpoint."""

import json
import math

from comparison import models
from comparison.mylos import steps_of
from validation.commands import Failed, succeed
from validation.jobs import run_jobs

PART = "agreement"
LIBRARY_PART = "agreement by cudnn"  # a part of its own, so that a library does not decide about our kernels
# Largest relative difference of the losses. The same arithmetic in another order changes the last bits of sums of products, and AdamW
# divides by gradients that are nearly zero.
BOUNDS = {"float": 1e-4, "bfloat16": 2e-2, "half": 5e-3}
RUN_LIMIT = 120


def difference(ours, others):
    """Returns the largest relative difference of two lists of losses."""
    if not ours or len(ours) != len(others):
        return math.inf
    parts = [abs(a - b) / abs(b) if b else math.inf for a, b in zip(ours, others)]
    return math.inf if any(math.isnan(part) for part in parts) else max(parts)


def losses(output, first=0):
    return [record["loss"] for record in steps_of(output) if record["step"] > first]


def compare_losses(session, part, name, ours, others, precision, table="agreement"):
    """Records whether two lists of losses agree within the bound of a precision."""
    found, bound = difference(ours, others), BOUNDS[precision]
    session.record.check(part, name, found <= bound, f"{len(ours)} steps differ by {found:.1e} at most, bound {bound:.0e}")
    session.record.figure(table, what=name, steps=len(ours), difference=found, bound=bound)


class Agreement:
    def __init__(self, session, clock):
        self.session, self.clock, self.sizes = session, clock, session.sizes
        self.model = models.make_random_bert(session.scratch / "agreement-model", session.bundle.vocabulary, self.sizes.small_model)
        self.steps, self.half = self.sizes.agreement_steps, self.sizes.agreement_steps // 2

    def command(self, build, precision, name, *more):
        """Returns the words that train with the program of `build`. `name`: of the output directory."""
        return [self.session.bundle.program(build), "train", "--model", self.model, "--train", self.session.small_questions,
                "--output", self.session.scratch / name, "--steps", self.steps, "--batch", self.sizes.agreement_batch, "--learning-rate", "1e-4",
                "--schedule", "constant", "--precision", precision, "--max-length", self.sizes.max_length, "--doc-stride", self.sizes.doc_stride,
                "--checkpoint-every", self.half, "--keep", "2", *more]

    def train(self, build, precision, name, *more, launcher=(), names=None):
        """Trains. Returns the output directory. `launcher`: words that start its ranks; `names`: another environment."""
        command = [*launcher, *self.command(build, precision, name, *more)]
        succeed(command, self.clock.limit(RUN_LIMIT), names or self.session.names_of(build))
        return self.session.scratch / name

    def compare(self, name, ours, others, precision, part=PART):
        compare_losses(self.session, part, name, ours, others, precision)

    def same_losses(self, precision):
        """Compares the losses of GPU and CPU. Returns the directories of both runs."""
        ours, theirs = (self.train(build, precision, f"{build}-{precision}", "--attention", "portable") for build in ("gpu", "cpu"))
        self.compare(f"losses of the GPU and of the CPU, {precision}", losses(ours), losses(theirs), precision)
        return {"gpu": ours, "cpu": theirs}

    def same_losses_by(self, attention, precision, cpu, *more, part=PART):
        """Compares the losses of the GPU with another attention kernel. `cpu`: the directory of the CPU's run; `more`: its other options."""
        ours = self.train("gpu", precision, f"gpu-{precision}-{attention}", "--attention", attention, *more)
        self.compare(f"losses of the GPU with {attention} and of the CPU, {precision}", losses(ours), losses(cpu), precision, part)

    def same_losses_by_library(self, attention, precision):
        """Compares the losses of GPU and CPU without dropout, which the attention kernels of libraries do not have."""
        without = ("--dropout", "0")
        cpu = self.train("cpu", precision, f"cpu-{precision}-without-dropout", "--attention", "portable", *without)
        self.same_losses_by(attention, precision, cpu, *without, part=LIBRARY_PART)

    def check_samples(self, output):
        """Checks the last record that the run wrote about its GPU."""
        lines = [line for file in (output / "gpus").glob("*.jsonl") for line in file.read_text().splitlines()]
        last = json.loads(lines[-1])["gpus"][0] if lines else {}
        complete = all(last.get(name, 0) > 0 for name in ("memory", "memory_total", "power")) and "utilization" in last and "energy" in last
        self.session.record.check(PART, "a run records what its GPU does", complete, json.dumps(last))

    def resume(self, build, other, runs, precision):
        """Resumes `build` from the middle checkpoint of `other`, and compares the second half of the losses."""
        checkpoint = next(iter(sorted((runs[other] / "checkpoints").glob("step-*.h5"))), None)
        if checkpoint is None:
            raise Failed(f"{runs[other].name} wrote no checkpoint")
        output = self.train(build, precision, f"{build}-from-{other}-{precision}", "--resume", checkpoint)
        self.compare(f"{build.upper()} goes on from the checkpoint of the {other.upper()}, {precision}", losses(output, self.half),
                     losses(runs[other], self.half), precision)


def agree_in(session, runner, precision):
    runs = runner.same_losses(precision)
    if precision == session.sizes.precisions[0] and not session.bundle.stand_in:
        runner.check_samples(runs["gpu"])
    for attention in session.attentions(precision):
        if attention != "portable":
            runner.same_losses_by(attention, precision, runs["cpu"])
    runner.resume("gpu", "cpu", runs, precision)
    runner.resume("cpu", "gpu", runs, precision)


def agreement(session, clock):
    if not session.wants("agreement"):
        return
    runner = Agreement(session, clock)
    run_jobs(session, "tests", PART, [(f"agreement {precision}", lambda precision=precision: agree_in(session, runner, precision))
                                      for precision in session.sizes.precisions])
    by_library = [(f"agreement by {attention} {precision}",
                   lambda attention=attention, precision=precision: runner.same_losses_by_library(attention, precision))
                  for precision in session.sizes.precisions for attention in session.library_attentions(precision)]
    run_jobs(session, "tests", LIBRARY_PART, by_library)
