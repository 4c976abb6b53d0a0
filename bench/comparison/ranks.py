"""Two ranks of one thread each: beside one process of two threads, and beside PyTorch's DDP and FSDP2 over gloo.

Every turn is a run of its own, as launchers start them; its first step is not counted. Products are oneDNN's on our side, so
that no turn takes another provider than the one before.
"""

import contextlib
import dataclasses

from comparison import machine
from comparison.mylos import run, steps_of, training_command
from comparison.peer import PeerGroup
from comparison.training import LOSS_STEPS, LOSS_TOLERANCE, rate, say, say_rates

RANKS = 2
ALONE = f"Mylos, 1 rank x {RANKS} threads"
MODE_TOLERANCE = 1e-5

# mode -> the least share of one process' speed that is asked
MODES = {"replicated": 0.92, "sharded-optimizer": None, "sharded-gradients": None, "sharded": 0.88, "hybrid": None}

STEPS = 3  # of a turn, after one that is not counted
STEPS_BESIDE = 2  # the same where the other takes half a minute for one
PADDING = "padded to the longest"


@dataclasses.dataclass
class Wrapping:
    """A way of PyTorch's to train in several processes, our mode that splits the same way, and how much faster it is to be."""

    name: str
    script: str
    mode: str
    asked: float


DDP = Wrapping("PyTorch DDP", "ddp", "replicated", 2.0)
FSDP2 = Wrapping("PyTorch FSDP2", "fsdp2", "sharded", 2.5)


def named(mode):
    return f"Mylos, {RANKS} ranks x 1 thread, {mode}"


def train(session, subject, mode, first, steps, *options):
    """The records of `steps` steps that begin with batch `first`; `mode` None: one process of RANKS threads."""
    output, order = session.scratch("run"), subject.data.write_order(session.scratch("order.jsonl"), first)
    command = training_command(session.program, subject.model, subject.data, output, steps, "--gemm", "onednn", "--overwrite", *options,
                               order=order)
    if mode is None:
        run(command, RANKS)
    else:
        run(["mpirun", "-n", RANKS, *command, "--mode", mode], None)
    return steps_of(output)


def check_losses(session, subject, mode, theirs, tolerance, against):
    """Ours in that mode gives these losses from the same weights on the same batches, dropout off."""
    losses = [step["loss"] for step in train(session, subject, mode, 0, LOSS_STEPS, *subject.data.without_dropout)]
    session.results.check(f"{subject.name}: {named(mode)}, against {against}, {LOSS_STEPS} steps", losses, theirs, tolerance)


def in_turns(session, subject, runs, steps):
    """Samples of real tokens (or images) a second. `runs`: name -> function of the first batch, which is not counted, and a count."""
    samples = {name: [] for name in runs}
    for turn in range(session.rounds):
        for name, measure in runs.items():
            samples[name].append(measure(turn * steps, 1 + steps))
        say_rates(f"{subject.name}: round {turn + 1} of {session.rounds}", samples)
    return samples


def ours(session, subject, mode):
    """A run that also notes what a rank holds and sends."""
    notes = {"resident_mib": [], "sent_mib": []}

    def measure(first, count):
        records = train(session, subject, mode, first, count)[1:]
        notes["resident_mib"].append(max(record["memory"] for record in records) / 2**20)
        notes["sent_mib"].append(max(record.get("sent", 0) for record in records) / 2**20)
        return rate(records, subject.data)

    return measure, notes


def enough_cpus(session, what):
    if machine.usable_cpus() >= RANKS:
        return True
    session.results.leave_out(what, f"{machine.usable_cpus()} CPU is usable, {RANKS} are wanted")
    return False


def modes(session, subject, names):
    """Ours with two ranks in each of the modes, against ours in one process."""
    what = f"{subject.name} training, batch {subject.data.size}, {RANKS} ranks x 1 thread"
    if not enough_cpus(session, what):
        return
    say(f"{subject.name}: checking losses")
    expected = [step["loss"] for step in train(session, subject, None, 0, LOSS_STEPS, *subject.data.without_dropout)]
    for mode in names:
        check_losses(session, subject, mode, expected, MODE_TOLERANCE, ALONE)
    measured = {ALONE: ours(session, subject, None), **{named(mode): ours(session, subject, mode) for mode in names}}
    samples = in_turns(session, subject, {name: measure for name, (measure, _) in measured.items()}, STEPS)
    for name, values in samples.items():
        session.results.cell(what, name, subject.data.unit, values, **measured[name][1])
    for mode in names:
        session.results.ratio(f"{what}, {mode}", f"1 rank x {RANKS} threads", samples[named(mode)], samples[ALONE], MODES[mode])


@contextlib.contextmanager
def loaded(session, subject, wrapping, tuned, dropout=None):
    """The peer's processes with the model in them. `tuned`: in the environment of comparison/peer.py."""
    with PeerGroup(session.python, "distributed_training.py", RANKS, session.scratch("peer.log"), tuned) as group:
        group.ask("load", wrapping=wrapping.script, model=str(subject.model), threads=1, learning_rate=subject.data.learning_rate,
                  dropout=dropout, **subject.data.of_peer())
        yield group


def losses_of(replies):
    """The batches' losses: each is the mean of the processes' shares."""
    return [sum(shares) / len(shares) for shares in zip(*(reply["losses"] for reply in replies))]


def peer_rate(subject, group):
    def measure(first, count):
        replies = group.ask("steps", batches=subject.data.batches(first, count), padding="longest")
        return sum(replies[0]["counts"][1:]) / max(sum(reply["seconds"][1:]) for reply in replies)

    return measure


def beside(session, subject, wrapping, tuned=False):
    """Ours against the peer that splits the same way; what is asked is asked against it as it is installed."""
    mode = wrapping.mode
    what = f"{subject.name} training, batch {subject.data.size}, {RANKS} ranks x 1 thread, {mode}"
    if not enough_cpus(session, what):
        return
    say(f"{subject.name}: checking losses")
    with loaded(session, subject, wrapping, tuned, dropout=0.0) as group:
        losses = losses_of(group.ask("steps", batches=subject.data.batches(0, LOSS_STEPS), padding="longest"))
    check_losses(session, subject, mode, losses, LOSS_TOLERANCE, wrapping.name)
    theirs = f"{wrapping.name}, {PADDING}{', tuned' if tuned else ''}"
    with loaded(session, subject, wrapping, tuned) as group:
        samples = in_turns(session, subject, {named(mode): ours(session, subject, mode)[0], theirs: peer_rate(subject, group)}, STEPS_BESIDE)
    for name, values in samples.items():
        session.results.cell(what, name, subject.data.unit, values)
    session.results.ratio(what, theirs, samples[named(mode)], samples[theirs], None if tuned else wrapping.asked)
