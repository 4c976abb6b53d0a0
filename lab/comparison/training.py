"""Compares training of Mylos and PyTorch: tokens per second in turns, peak memory, precision, threads."""

import contextlib
import dataclasses
import statistics
import sys

from comparison.environment import PeersMissing
from comparison.mylos import MANY_STEPS, StandingRun, run, run_json, steps_of, training_command
from comparison.peer import Peer

LOSS_STEPS = 3
LOSS_TOLERANCE = 1e-3
BFLOAT16_TOLERANCE = 2e-2
MEMORY_STEPS = 12

INSTALLED = "PyTorch, padded to the longest"
TUNED = "PyTorch, padded to the longest, tuned"


@dataclasses.dataclass
class Way:
    """A configuration of PyTorch. `tuned`: it runs in the environment of comparison/peer.py, not as installed."""

    padding: object = None  # "max", "longest", or a number whose multiple the length is; None for images
    grouped: bool = False  # sequences of similar length together
    compiled: bool = False
    autocast: bool = False
    tuned: bool = False
    contends: bool = False  # the fastest contender is the row "best effort"

    def request(self):
        return {"padding": self.padding, "compiled": self.compiled, "autocast": self.autocast}


# The contenders for language models are what a user who wants speed does: grouped, padded to a multiple of 8.
WAYS = {
    "PyTorch, padded to 384": Way("max"),
    INSTALLED: Way("longest"),
    TUNED: Way("longest", tuned=True),
    "PyTorch, grouped by length": Way(8, grouped=True, tuned=True, contends=True),
    "PyTorch, grouped, torch.compile": Way(8, grouped=True, compiled=True, tuned=True, contends=True),
    "PyTorch, channels-last": Way(contends=True),
    "PyTorch, channels-last, tuned": Way(tuned=True, contends=True),
    "PyTorch, channels-last, autocast": Way(autocast=True, contends=True),
    "PyTorch, channels-last, autocast, tuned": Way(autocast=True, tuned=True, contends=True),
}
GROUPED = tuple(name for name, way in WAYS.items() if way.grouped)
BEST = "PyTorch, best effort"
BEFORE = "Mylos before"  # the program of --before


@dataclasses.dataclass
class OwnRun:
    """A run of Mylos."""

    program: str
    options: tuple = ()
    threads: int = 1


@dataclasses.dataclass
class Subject:
    """A model, its data, and the number of steps of a turn."""

    name: str
    model: object
    data: object
    steps: int
    tolerance: float = LOSS_TOLERANCE  # relative, of losses compared with the peer's
    memory_steps: int = MEMORY_STEPS
    adapter: object = None  # directory of an adapter, which alone is trained

    @property
    def options(self):
        return ["--adapter", str(self.adapter)] if self.adapter else []


def say(text):
    print(text, file=sys.stderr, flush=True)


def say_rates(text, samples):
    say(f"{text}: " + "; ".join(f"{name} {values[-1]:.0f}" for name, values in samples.items()))


def load(peer, subject, session, dropout=None):
    adapter = {"adapter": str(subject.adapter)} if subject.adapter else {}
    peer.ask("load", model=str(subject.model), threads=session.threads, learning_rate=subject.data.learning_rate, dropout=dropout,
             **adapter, **subject.data.of_peer())


def check_losses(session, subject, names, options=()):
    """Checks that Mylos and PyTorch give the same losses from the same weights on the same batches, without dropout. Yields the names
    of the configurations that ran."""
    say(f"{subject.name}: checking losses")
    batches = subject.data.batches(0, LOSS_STEPS)
    output = session.scratch("check")
    command = training_command(session.program, subject.model, subject.data, output, LOSS_STEPS, *subject.data.without_dropout,
                               *subject.options, *options)
    run(command, session.threads)
    ours = [step["loss"] for step in steps_of(output)]
    for name in names:
        way = WAYS[name]
        with Peer(session.python, "pytorch_training.py", session.threads, session.scratch("check.log"), tuned=way.tuned) as peer:
            load(peer, subject, session, dropout=0.0)
            try:
                reply = peer.ask("steps", batches=batches, **way.request())
            except PeersMissing as reason:
                session.results.leave_out(f"{subject.name}: {name}", reason)
                continue
        tolerance = max(subject.tolerance, BFLOAT16_TOLERANCE if way.autocast else 0)
        session.results.check(f"{subject.name}: {name}, {LOSS_STEPS} steps", ours, reply["losses"], tolerance)
        yield name


def rate(records, data):
    return sum(record[data.counts] for record in records) / sum(record["seconds"] for record in records)


def peer_turn(peer, subject, way, first, turn, turns):
    """Returns the peer's real tokens (or images) per second over the batches of Mylos (or as many of similar length), after a warm-up."""
    data, steps = subject.data, subject.steps
    batches = data.grouped(turn, turns, steps) if way.grouped else data.batches(first, steps)
    warm_up = [batches[-1]]
    reply = peer.ask("steps", batches=warm_up + batches, **way.request())
    return sum(reply["counts"][1:]) / sum(reply["seconds"][1:])


def start_peers(session, subject, ways, stack):
    """Returns {configuration: process}. There is one process as installed and one tuned."""
    processes = {}
    for tuned in sorted({WAYS[name].tuned for name in ways}):
        log = session.scratch(f"peer-{'tuned' if tuned else 'plain'}.log")
        processes[tuned] = stack.enter_context(Peer(session.python, "pytorch_training.py", session.threads, log, tuned=tuned))
        load(processes[tuned], subject, session)
    peers = {name: processes[WAYS[name].tuned] for name in ways}
    warm_up(peers, subject)
    return peers


def warm_up(peers, subject):
    for name, peer in peers.items():
        say(f"{subject.name}: warming up {name}")
        way = WAYS[name]
        batches = subject.data.grouped(0, 1, 4) if way.grouped else subject.data.batches(0, 1)
        peer.ask("steps", batches=batches, **way.request())


def in_turns(session, subject, runs, ways):
    """Returns samples of real tokens (or images) per second. `runs`: {name: OwnRun}."""
    samples = {name: [] for name in [*runs, *ways]}
    with contextlib.ExitStack() as stack:
        ours = {}
        for name, own in runs.items():
            output = session.scratch(f"run-{len(ours)}")
            command = training_command(own.program, subject.model, subject.data, output, MANY_STEPS, *subject.options, *own.options)
            ours[name] = stack.enter_context(StandingRun(command, output, own.threads, session.scratch(f"run-{len(ours)}.log")))
        peers = start_peers(session, subject, ways, stack)
        for turn in range(session.rounds):
            first = 0
            for name, standing in ours.items():
                first, records = standing.turn(subject.steps)
                samples[name].append(rate(records, subject.data))
            for name, peer in peers.items():
                samples[name].append(peer_turn(peer, subject, WAYS[name], first, turn, session.rounds))
            say_rates(f"{subject.name}: round {turn + 1} of {session.rounds}", samples)
    return samples


def record(session, subject, samples):
    what = f"{subject.name} training"
    for name, values in samples.items():
        session.results.cell(what, name, subject.data.unit, values)


def speed(session, subject, ways, options=()):
    """Compares Mylos, run with `options`, with each of `ways`, which are names of WAYS."""
    ways = list(check_losses(session, subject, ways, options))
    runs = {name: OwnRun(program, options, session.threads) for name, program in session.programs.items()}
    if BEFORE in runs:
        check_ours(session, subject, runs, LOSS_TOLERANCE)
    samples = in_turns(session, subject, runs, ways)
    record(session, subject, samples)
    contenders = [name for name in ways if WAYS[name].contends]
    best = max(contenders, key=lambda name: statistics.median(samples[name]), default=None)
    for ours in runs:
        what = row_name(f"{subject.name} training", ours)
        for name in ways:
            if name not in contenders:
                session.results.ratio(what, name, samples[ours], samples[name])
        if best:
            session.results.ratio(what, f"{BEST} ({best.removeprefix('PyTorch, ')})", samples[ours], samples[best])
    beside_before(session, f"{subject.name} training", samples)


def row_name(what, ours):
    """Returns the name of a row for a program of session.programs."""
    return f"{what}, before" if ours == BEFORE else what


def beside_before(session, what, samples):
    """Adds the ratio to the program of --before, if there is one."""
    if BEFORE in samples:
        session.results.ratio(what, BEFORE, samples["Mylos"], samples[BEFORE])


def check_ours(session, subject, runs, tolerance):
    """Checks that all runs of Mylos give the losses of the first one, without dropout."""
    losses = {}
    for name, own in runs.items():
        output = session.scratch(f"check-{len(losses)}")
        run(training_command(own.program, subject.model, subject.data, output, LOSS_STEPS, *subject.data.without_dropout, *own.options), own.threads)
        losses[name] = [step["loss"] for step in steps_of(output)]
    first = next(iter(losses.values()))
    for name, values in losses.items():
        session.results.check(f"{subject.name}: {name}, {LOSS_STEPS} steps", values, first, tolerance)


def of_both(session, subject, runs, tolerance, what, against):
    """Compares the first with the second of `runs`, {name: (options, threads)}, for each program in turns."""
    every = {f"{ours} {name}": OwnRun(program, *run) for ours, program in session.programs.items() for name, run in runs.items()}
    check_ours(session, subject, {f"Mylos {name}": every[f"Mylos {name}"] for name in runs}, tolerance)
    for name in runs if BEFORE in session.programs else []:
        check_ours(session, subject, {f"{ours} {name}": every[f"{ours} {name}"] for ours in session.programs}, LOSS_TOLERANCE)
    samples = in_turns(session, subject, every, [])
    record(session, subject, samples)
    first, second = runs
    for ours in session.programs:
        session.results.ratio(row_name(what, ours), against, samples[f"{ours} {first}"], samples[f"{ours} {second}"])
    for name in runs:
        beside_before(session, f"{subject.name} training, {name}", {ours: samples[f"{ours} {name}"] for ours in session.programs})


def precision(session, subject):
    """Compares bfloat16 with float, both in Mylos."""
    runs = {"bfloat16": (["--precision", "bfloat16"], session.threads), "float": ([], session.threads)}
    of_both(session, subject, runs, BFLOAT16_TOLERANCE, f"{subject.name} training, bfloat16", "our float")


def threads(session, subject):
    """Compares Mylos with all threads and with one."""
    if session.threads < 2:
        return session.results.leave_out(f"{subject.name} training, threads", "one CPU is usable")
    runs = {f"{session.threads} threads": ([], session.threads), "1 thread": ([], 1)}
    of_both(session, subject, runs, LOSS_TOLERANCE, f"{subject.name} training, {session.threads} threads", "1 thread")


def memory(session, subject, name=INSTALLED):
    """Compares the peak resident memory of whole training processes with the same steps. `name`: a name of WAYS."""
    say(f"{subject.name}: memory")
    what = f"{subject.name} training, peak resident memory"
    command = training_command(session.program, subject.model, subject.data, session.scratch("memory"), subject.memory_steps)
    _, ours = run(command, session.threads)
    session.results.cell(what, "Mylos", "MiB", [ours / 2**20])
    with Peer(session.python, "pytorch_training.py", session.threads, session.scratch("memory.log")) as peer:
        load(peer, subject, session)
        peer.ask("steps", batches=subject.data.batches(0, subject.memory_steps), **WAYS[name].request())
        theirs = peer.end()
    session.results.cell(what, name, "MiB", [theirs / 2**20])
    session.results.ratio(what, name, [ours], [theirs])


def adapter_step(session, subject):
    """Compares a step that trains an adapter with a step of the whole model without the gradients of its weights and their update."""
    adapter = [*subject.options, "--breakdown"]
    what, samples = f"{subject.name}, bench step", {"with the adapter": [], "of the model, without gradients of weights": []}
    for turn in range(session.rounds):
        say(f"{subject.name}: bench step, round {turn + 1} of {session.rounds}")
        for name, options in zip(samples, (adapter, ["--breakdown"])):
            command = [session.program, "bench", "step", "--model", subject.model, "--data", subject.data.file, "--batch", str(subject.data.size),
                       *subject.data.options, "--repeats", str(subject.steps), *options, "--json"]
            breakdown = run_json(command, session.threads)["breakdown"]
            saved = sum(row["seconds"] for row in breakdown["kernels"] if is_saved(row["name"])) if options != adapter else 0.0
            samples[name].append(1000 * (breakdown["seconds"] - saved))
    for name, values in samples.items():
        session.results.cell(what, name, "ms", values)
    first, second = samples.values()
    session.results.ratio(what, "the model's step, without gradients of weights", first, second)


def is_saved(kernel):
    """Returns whether a step of the whole model has a kernel that frozen weights save."""
    return "/weight-gradient" in kernel or kernel.startswith("mylos::optimizer::") or kernel == "fill of mylos::gradients"
