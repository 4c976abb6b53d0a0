"""Checks that GPU and CPU compute the same losses, and that each resumes from the other's checkpoint."""

import dataclasses
import functools
import hashlib
import json
import math
import pathlib

from comparison import games, models
from comparison.mylos import steps_of
from validation.commands import Failed, succeed
from validation.jobs import run_jobs
from validation.sizes import BY_NEED

PART = "agreement"
# Largest relative difference of the losses. The same arithmetic in another order changes the last bits of sums of products, and AdamW
# divides by gradients that are nearly zero.
BOUNDS = {"float": 1e-4, "bfloat16": 2e-2, "half": 5e-3}
RUN_LIMIT = 60
BERT = "BERT"
WITHOUT_DROPOUT = ("--dropout", "0")


def difference(ours, others):
    """Returns the largest relative difference of two lists of losses."""
    if not ours or len(ours) != len(others):
        return math.inf
    parts = [abs(a - b) / abs(b) if b else math.inf for a, b in zip(ours, others)]
    return math.inf if any(math.isnan(part) for part in parts) else max(parts)


def losses(output, first=0):
    return [record["loss"] for record in steps_of(output) if record["step"] > first]


@dataclasses.dataclass
class Subject:
    """A small model with random weights, its data (a file or synthetic:...), and its options."""

    model: pathlib.Path
    data: object
    options: list
    learning_rate: str = "1e-4"

    @functools.cached_property
    def content(self):
        """Returns a checksum of all files."""
        total = hashlib.sha256()
        for file in (self.model / "config.json", self.model / "model.safetensors", pathlib.Path(self.data)):
            total.update(file.read_bytes() if file.is_file() else str(self.data).encode())
        return total.hexdigest()


def bert(session, folder):
    sizes = session.sizes
    model = models.make_random_bert(folder, session.bundle.vocabulary, sizes.small_model)
    return Subject(model, session.small_questions, ["--max-length", sizes.max_length, "--doc-stride", sizes.doc_stride])


def llama(shape, session, folder):
    tokens, texts = session.sizes.small_tokens, session.sizes.agreement_steps * session.sizes.agreement_batch
    model = models.make_random_llama(folder, session.root / "examples/chess/model", shape, tokens)
    data = games.write_random_ids(folder / "texts.jsonl", texts, tokens, shape["vocab_size"])
    return Subject(model, data, ["--max-length", tokens, "--long", "truncate"])


def resnet(session, folder):
    sizes = session.sizes
    model = models.make_random_resnet(folder, sizes.small_resnet, labels=10)
    images = sizes.agreement_steps * sizes.agreement_batch
    # At 1e-4, rounding grows through 50 layers and 12 steps to 5e-4 between two providers of a CPU, in float; at 1e-5 to 1e-5.
    return Subject(model, f"synthetic:{images}x{sizes.small_pixels}x{sizes.small_pixels}", [], learning_rate="1e-5")


HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 512}
SUBJECTS = {BERT: bert, "ResNet": resnet, **{f"Llama with heads of {size}": functools.partial(llama, {**HEADS, "hidden_size": 4 * size})
                                             for size in (64, 128)}}


def ways(session, name, precision):
    """Yields (what, options of the GPU, options of both): the kernels to compare with the CPU's, the fastest first."""
    if name == "ResNet":
        for provider in session.convolutions():
            yield provider, ["--gemm", provider], ()
        return
    for attention in session.library_attentions(precision):
        yield attention, ["--attention", attention], WITHOUT_DROPOUT if name == BERT else ()
    for attention in session.attentions(precision):
        yield attention, ["--attention", attention], ()


class Agreement:
    def __init__(self, session, clock, name=BERT):
        self.session, self.clock, self.sizes, self.name = session, clock, session.sizes, name
        if name not in session.subjects:
            session.subjects[name] = SUBJECTS[name](session, session.scratch / f"agreement-{len(session.subjects)}")
        self.subject = session.subjects[name]
        self.steps, self.half = self.sizes.agreement_steps, self.sizes.agreement_steps // 2

    def output(self, name):
        return self.session.scratch / f"{self.subject.model.name}-{name}"

    def settings(self, precision, more):
        return [*map(str, ["--steps", self.steps, "--batch", self.sizes.agreement_batch, "--learning-rate", self.subject.learning_rate,
                           "--schedule", "constant", "--precision", precision, *self.subject.options, *more])]

    def train(self, build, precision, name, *more, launcher=(), names=None):
        """Trains with the program of `build`. Returns the output directory. `launcher`: words that start its ranks; `names`: another
        environment."""
        session = self.session
        output = self.output(name)
        command = [*launcher, session.bundle.program(build), "train", "--model", self.subject.model, "--train", self.subject.data, "--output", output,
                   *self.settings(precision, more)]
        if "--checkpoint-every" not in more:
            command += ["--checkpoint-every", "never"]
        succeed(command, self.clock.limit(RUN_LIMIT), names or session.names_of(build))
        return output

    def cpu_losses(self, precision, more=()):
        """Returns the losses of the CPU: those that were recorded when the bundle was made, or of a run."""
        key = loss_key(self, precision, more)
        if key not in self.session.bundle.losses:
            self.session.bundle.losses[key] = losses(self.train("cpu", precision, f"cpu-{len(self.session.bundle.losses)}", *more))
        return self.session.bundle.losses[key]

    def compare(self, name, ours, others, precision):
        found, bound = difference(ours, others), BOUNDS[precision]
        self.session.record.check(PART, name, found <= bound, f"{len(ours)} steps differ by {found:.1e} at most, bound {bound:.0e}")
        self.session.record.figure("agreement", what=name, steps=len(ours), difference=found, bound=bound)

    def compare_way(self, precision, what, options, both):
        ours = self.train("gpu", precision, f"gpu-{precision}-{what}", *options, *both)
        if (self.name, what) == (BERT, "tensor-cores"):
            self.check_samples(ours)
        self.compare(f"losses of the GPU and of the CPU, {self.name}, {precision}, {what}", losses(ours), self.cpu_losses(precision, both), precision)

    def check_samples(self, output):
        """Checks the last record that the run wrote about its GPU."""
        lines = [line for file in (output / "gpus").glob("*.jsonl") for line in file.read_text().splitlines()]
        last = json.loads(lines[-1])["gpus"][0] if lines else {}
        complete = all(last.get(name, 0) > 0 for name in ("memory", "memory_total", "power")) and "utilization" in last and "energy" in last
        self.session.record.check(PART, "a run records what its GPU does", complete, json.dumps(last))

    def resume_each(self, precision):
        """Trains on GPU and CPU, resumes each from the other's middle checkpoint, and compares the second half of the losses."""
        keep = ("--attention", "portable", "--keep", "2", "--checkpoint-every", str(self.half))
        runs = {build: self.train(build, precision, f"{build}-{precision}-kept", *keep) for build in ("gpu", "cpu")}
        for build, other in (("gpu", "cpu"), ("cpu", "gpu")):
            checkpoint = next(iter(sorted((runs[other] / "checkpoints").glob("step-*.h5"))), None)
            if checkpoint is None:
                raise Failed(f"{runs[other].name} wrote no checkpoint")
            output = self.train(build, precision, f"{build}-from-{other}-{precision}", *keep, "--resume", checkpoint)
            self.compare(f"{build.upper()} goes on from the checkpoint of the {other.upper()}, {precision}", losses(output, self.half),
                         losses(runs[other], self.half), precision)


def loss_key(runner, precision, more):
    return " ".join([runner.subject.content, *runner.settings(precision, more)])


def record_cpu_losses(session, clock):
    """Returns the losses of the CPU with which ways() are compared on a GPU with all kernels."""
    for name in SUBJECTS:
        for precision in session.sizes.precisions:
            for both in {(), WITHOUT_DROPOUT} if name == BERT else {()}:
                Agreement(session, clock, name).cpu_losses(precision, both)
    return session.bundle.losses


def jobs_of(session, clock):
    """Yields (name, job), the most needed first."""
    precisions = sorted(session.sizes.precisions, key=BY_NEED.index)
    for precision in precisions:
        for name in SUBJECTS:
            for what, options, both in ways(session, name, precision):
                yield (f"agreement {name}, {precision}, {what}", lambda name=name, words=(precision, what, options, both):
                       Agreement(session, clock, name).compare_way(*words))
    for precision in precisions:
        yield f"agreement resumed, {precision}", lambda precision=precision: Agreement(session, clock).resume_each(precision)


def agreement(session, clock):
    run_jobs(session, "agreement", PART, jobs_of(session, clock))
