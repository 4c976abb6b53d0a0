"""Compares Mylos with PyTorch and transformers on the same weights and batches. It first checks that the losses agree."""

import concurrent.futures
import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import threading

from comparison import games, pictures, questions
from comparison.environment import PeersMissing
from comparison.mylos import steps_of, training_command
from comparison.peer import Peer
from validation import kernels
from validation.agreement import difference
from validation.commands import Failed, OutOfTime, run, succeed
from validation.jobs import run_jobs
from validation.record import say

PART = "beside PyTorch"


def configuration(padding=None, compiled=False, grouped=False, attention="padded"):
    """A configuration of PyTorch; `padding` as in lab/peers/features.py, None for images."""
    return {"attention": attention, "padding": padding, "grouped": grouped, "compiled": compiled}


# name -> configuration of PyTorch. The first is that of run_qa; the others are those of a user who wants speed.
QUESTION_WAYS = {
    "padded to 384, autocast": configuration("max"),
    "packed, varlen attention": configuration("longest", attention="packed"),
    "grouped by length, torch.compile": configuration(8, grouped=True, compiled=True),
    "packed, varlen attention, torch.compile": configuration("longest", compiled=True, attention="packed"),
}
# All texts have the same length, so that there is no padding.
TEXT_WAYS = {"causal attention, autocast": configuration("longest"), "causal attention, torch.compile": configuration("longest", compiled=True)}
IMAGE_WAYS = {"channels-last, autocast": configuration(), "channels-last, torch.compile": configuration(compiled=True)}
LOSS_STEPS = 3
# Largest relative difference of the losses of three steps. PyTorch's autocast rounds other sums to 16 bits than Mylos does.
TOLERANCES = {"float": 1e-3, "bfloat16": 2e-2, "half": 1e-2}
TURNS = 3
ASK_LIMIT = 150


class TimedPeer(Peer):
    """A peer that compiles with all threads of the host, which do not disturb what is timed on the device, and that is killed if it takes
    too long to answer."""

    def __init__(self, python, threads, log):
        super().__init__(python, "pytorch_gpu.py", threads, log, more={"TORCHINDUCTOR_COMPILE_THREADS": str(threads)})

    def ask_within(self, limit, command, **request):
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        try:
            return self.ask(command, **request)
        finally:
            timer.cancel()


def python_with_torch(clock, dry_run):
    """Returns a Python that has both packages. Errors: PeersMissing."""
    python = os.environ.get("MYLOS_PYTHON") or sys.executable
    done = run([python, "-c", "import torch, transformers; print(torch.cuda.is_available())"], clock.limit(90))
    if done.code != 0:
        raise PeersMissing(f"{python} lacks PyTorch or transformers ({done.reason()}); name one that has them as MYLOS_PYTHON")
    if not dry_run and done.output.strip() != "True":
        raise PeersMissing(f"the PyTorch of {python} sees no GPU")
    return python


class Questions:
    """A BERT on questions of SQuAD."""

    ways = QUESTION_WAYS

    def __init__(self, session, name, folder):
        sizes = session.sizes
        self.model = session.model(name)
        self.data = questions.TrainingSet(str(session.bundle.program("cpu")), self.model, session.bundle.questions, folder,
                                          sizes.compare_batches, size=sizes.batch, environment=session.names_of("cpu"))

    def attentions(self, session, precision):
        return session.attentions(precision)


class Texts:
    """A Llama on texts of equal length."""

    ways = TEXT_WAYS

    def attentions(self, session, precision):
        return session.library_attentions(precision) + session.attentions(precision)

    def __init__(self, session, name, folder):
        sizes = session.sizes
        self.model = session.model(name)
        batches = sizes.compare_steps
        source = games.write_random_ids(folder / "texts.jsonl", batches * sizes.llama_batch, sizes.llama_tokens, games.PIECES)
        self.data = games.GameSet(str(session.bundle.program("cpu")), self.model, source, folder, batches, size=sizes.llama_batch,
                                  max_length=sizes.llama_tokens, environment=session.names_of("cpu"))


class Images:
    """A ResNet on synthetic images."""

    ways = IMAGE_WAYS

    def __init__(self, session, name, folder):
        sizes = session.sizes
        self.model = session.model(name)
        self.data = pictures.PictureSet(folder, sizes.resnet_pixels, sizes.resnet_batch, count=2 * sizes.resnet_batch)

    def attentions(self, session, precision):
        return [None]


class Beside:
    """Compares Mylos with PyTorch on one subject, which has a model, data, and configurations of PyTorch."""

    def __init__(self, session, clock, python, name, subject):
        self.session, self.clock, self.python, self.name = session, clock, python, name
        self.sizes = session.sizes
        self.folder = session.scratch / f"beside-{name}"
        self.folder.mkdir()
        self.device = "cpu" if session.dry_run else "cuda"
        self.subject = subject(session, name, self.folder)
        self.model, self.data, self.ways = self.subject.model, self.subject.data, self.subject.ways
        self.runs, self.peers = 0, itertools.count()
        self.measured = {}  # precision -> attention, rates, bytes and losses of Mylos

    def ours(self, steps, precision, *more):
        """Runs Mylos. Returns the records of its steps."""
        self.runs += 1
        output = self.folder / f"run-{self.runs}"
        command = training_command(self.session.bundle.program("gpu"), self.model, self.data, output, steps, "--precision", precision, *more)
        succeed(command, self.clock.limit(ASK_LIMIT), self.session.names)
        return steps_of(output)

    @contextlib.contextmanager
    def peer(self):
        """Starts a process for one configuration, because some of them replace PyTorch's attention."""
        log = self.folder / f"peer-{next(self.peers)}.log"
        with TimedPeer(self.python, self.session.threads, log) as peer:
            yield peer

    def load(self, peer, way, precision, dropout=None):
        """Loads the model. `dropout` replaces the model's."""
        self.session.record.versions = peer.ask_within(
            self.clock.limit(ASK_LIMIT), "load", device=self.device, precision=precision, attention=way["attention"],
            model=str(self.model), threads=self.session.threads, learning_rate=self.data.learning_rate, dropout=dropout,
            **self.data.of_peer())

    def ask(self, peer, way, batches, compiled):
        return peer.ask_within(self.clock.limit(ASK_LIMIT), "steps", batches=batches, padding=way["padding"], compiled=compiled)

    def check(self, peer, name, precision, ours):
        """Checks that configuration `name` gives our losses on the same batches without dropout. Returns whether it does."""
        self.load(peer, self.ways[name], precision, dropout=0.0)
        theirs = self.ask(peer, self.ways[name], self.data.batches(0, LOSS_STEPS), False)["losses"]
        found, bound = difference(theirs, ours), TOLERANCES[precision]
        self.session.record.check(PART, f"losses, {self.name}, {precision}: {name}", found <= bound,
                                  f"{LOSS_STEPS} steps differ by {found:.1e} at most, bound {bound:.0e}")
        return found <= bound

    def losses(self, precision, attention="portable"):
        return [step["loss"] for step in self.ours(LOSS_STEPS, precision, *self.data.without_dropout, *attention_option(attention))]

    def timed_of_ours(self, precision):
        """Times each attention kernel of the subject, the portable one only if all others fail: with long texts it may take a hundred times
        as long. Returns the fastest one, its rates, and its bytes of device memory. Errors: Failed if all fail; OutOfTime."""
        found = []
        for attention in self.subject.attentions(self.session, precision):
            if found and attention == "portable":
                break
            who = f"attention {attention}" if attention else "Mylos"
            try:
                records = self.timed_steps_of_ours(precision, attention)
            except Failed as reason:
                self.session.record.check(PART, f"{self.name}, {precision}, {who}", False, str(reason))
                continue
            except OutOfTime:
                if not found:
                    raise
                break
            rates, memory = rates_by_turn(records, self.data.counts), max(record["memory"] for record in records)
            self.figure(precision, f"Mylos, {who}" if attention else who, rates, memory=memory)
            found.append((attention, rates, memory))
        if not found:
            raise Failed("no run of ours succeeded")
        return max(found, key=lambda one: statistics.median(one[1]))

    def figure(self, precision, who, samples, **more):
        say(f"{self.name}, {precision}, {who}: {statistics.median(samples):.0f} {self.data.unit}")
        self.session.record.figure("beside", model=self.name, precision=precision, batch=self.data.size, who=who, unit=self.data.unit,
                                   rate=statistics.median(samples), samples=samples, **more)

    def compare_floats(self):
        """Compares only losses, which agree closely in float."""
        with self.peer() as peer:
            self.check(peer, next(iter(self.ways)), "float", self.losses("float"))

    def compare(self, precision, compiled):
        """Checks and times the configurations that PyTorch compiles, or the others."""
        if precision not in self.measured:
            fastest = self.timed_of_ours(precision)
            self.measured[precision] = (*fastest, self.losses(precision, fastest[0]))
        _, own, memory, ours = self.measured[precision]
        if compiled:
            self.compile_together(precision)
        for name in (name for name, way in self.ways.items() if way["compiled"] == compiled):
            try:
                with self.peer() as peer:
                    agrees = self.check(peer, name, precision, ours)
                    self.time(peer, name, precision, own, memory, agrees)
            except (PeersMissing, OutOfTime) as reason:
                self.session.record.leave_out(PART, f"{self.name}, {precision}: {name}", reason)

    def timed_steps_of_ours(self, precision, attention):
        return self.ours(self.sizes.compare_steps, precision, *attention_option(attention))[self.sizes.compare_steps // 3 :]

    def warm_up(self, peer, way, precision):
        """Loads the model, and compiles it if the configuration asks for this. Returns the batches to time."""
        steps = self.sizes.compare_steps
        self.load(peer, way, precision)
        timed = steps - steps // 3
        batches = self.data.grouped(0, 1, timed) if way["grouped"] else self.data.batches(steps // 3, timed)
        self.ask(peer, way, batches[:: max(1, steps // 5)], way["compiled"])
        return batches

    def compile_together(self, precision):
        """Compiles all configurations that PyTorch compiles at the same time, if there are several, in processes of their own. Those that are
        timed find the results in PyTorch's cache. What fails here fails again there, and is recorded then."""
        def compile_one(way):
            with contextlib.suppress(PeersMissing, OutOfTime), self.peer() as peer:
                self.warm_up(peer, way, precision)

        compiled = [way for way in self.ways.values() if way["compiled"]]
        if len(compiled) < 2:
            return
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(compile_one, compiled))

    def time(self, peer, name, precision, own, memory, agrees):
        """Times PyTorch on the batches of Mylos, after a warm-up. `own`, `memory`: rates and bytes of Mylos, whose first steps do not count."""
        way = self.ways[name]
        batches = self.warm_up(peer, way, precision)
        replies = [self.ask(peer, way, batches[turn::TURNS], way["compiled"]) for turn in range(TURNS)]
        samples = [sum(reply["counts"]) / sum(reply["seconds"]) for reply in replies]
        self.figure(precision, f"PyTorch, {name}", samples, losses_agree=agrees,
                    ours_over_theirs=statistics.median(own) / statistics.median(samples), **memory_figures(replies, memory))


def attention_option(attention):
    return ["--attention", attention] if attention else []


def rates_by_turn(records, counts="tokens"):
    """Returns the real tokens (or images) per second in each third of the steps."""
    size = max(1, len(records) // TURNS)
    return [rate(records[first : first + size], counts) for first in range(0, len(records) - size + 1, size)]


def memory_figures(replies, ours):
    """Returns the used device memory, queried in the same way by both programs, and the peak of PyTorch's tensors."""
    if "memory" not in replies[-1]:
        return {}
    theirs = max(reply["memory"] for reply in replies)
    return {"memory": theirs, "peak_allocated": max(reply["peak_allocated"] for reply in replies), "memory_ours_over_theirs": ours / theirs}


def rate(records, counts):
    return sum(record[counts] for record in records) / sum(record["seconds"] for record in records)


def compare_attention(session, clock, python):
    """Compares each precision and model separately, with a single process of PyTorch."""
    sizes = session.sizes
    with TimedPeer(python, session.threads, session.scratch / "attention.log") as peer:
        for precision in sizes.compare_precisions:
            for name in sizes.attention_heads:
                attempt(session.record, f"attention, {name}, {precision}", lambda: compare_passes(session, clock, peer, name, precision))


def compare_passes(session, clock, peer, name, precision):
    """Compares both passes of our attention kernels with PyTorch's flash attention, over the same lengths and without dropout."""
    sizes = session.sizes
    ours = kernels.attention(session, clock, name, precision, "0")
    theirs = peer.ask_within(clock.limit(ASK_LIMIT), "attention", device="cpu" if session.dry_run else "cuda", precision=precision,
                             lengths=sizes.attention_lengths, heads=sizes.attention_heads[name], size=sizes.attention_head_size,
                             repeats=sizes.repeats)
    session.record.figure("beside attention", model=name, precision=precision, who="PyTorch, flash attention", **theirs)
    for row in ours:
        seconds = {part: row[part]["seconds"] for part in ("forward", "backward")}
        session.record.figure("beside attention", model=name, precision=precision, who=f"Mylos, {row['kernel']}", **seconds,
                              ours_over_theirs=speed_ratios(seconds, theirs))


def speed_ratios(ours, theirs):
    """Returns the speedups of each pass and of both together."""
    both = lambda seconds: seconds["forward"] + seconds["backward"]
    return {"forward": theirs["forward"] / ours["forward"], "backward": theirs["backward"] / ours["backward"], "both": both(theirs) / both(ours)}


def jobs_of(session, clock, python):
    """Yields (name, job): ResNet, Llama and BERTs in the first precision, attention alone, BERTs in float and in the other precisions, and
    last the configurations that PyTorch compiles, which takes it long."""
    made = {}
    first, *others = session.sizes.compare_precisions

    def comparison(name, subject=Questions):
        if name not in made:
            made[name] = Beside(session, clock, python, name, subject)
        return made[name]

    sizes = session.sizes
    subjects = {**{name: Images for name in sizes.resnets}, **{name: Texts for name in sizes.llamas}, **{name: Questions for name in sizes.models}}
    for name, subject in subjects.items():
        yield f"{name}, {first}", lambda name=name, subject=subject: comparison(name, subject).compare(first, False)
    yield "attention", lambda: compare_attention(session, clock, python)
    for name in sizes.models:
        yield f"{name}, float", lambda name=name: comparison(name).compare_floats()
        for precision in others:
            yield f"{name}, {precision}", lambda name=name, precision=precision: comparison(name).compare(precision, False)
    for name, subject in subjects.items():
        for precision in (first, *(others if subject is Questions else ())):
            yield (f"{name}, {precision}, torch.compile", lambda name=name, subject=subject, precision=precision:
                   comparison(name, subject).compare(precision, True))


def beside(session, clock):
    try:
        python = python_with_torch(clock, session.dry_run)
    except (PeersMissing, OutOfTime) as reason:
        return session.record.leave_out(PART, "all", reason)
    run_jobs(session, "compare", PART, jobs_of(session, clock, python))


def attempt(record, name, job):
    """Runs a job and records its failure, so that the next one still runs."""
    try:
        job()
    except (OutOfTime, PeersMissing) as reason:
        record.leave_out(PART, name, reason)
    except (Failed, OSError, ValueError, RuntimeError, subprocess.SubprocessError) as reason:
        record.check(PART, name, False, str(reason))
